"""What users of such systems run into: each scenario by its number, proven here or by the test that is named.

The numbering has gaps; those that later parts of the project bring are added with them.
"""

from __future__ import annotations

import ast
import re
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.botapi.poller import run_poller
from telegram_bus.botapi.polling import PollState
from telegram_bus.core.errors import StateError
from telegram_bus.home import Home, Profile
from telegram_bus.roles.absences import GRACE
from telegram_bus.roles.deliveries import REFUSALS
from telegram_bus.roles.leadership import hold_leadership
from telegram_bus.roles.locking import bot_lock_path
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.settings import load_settings, store_settings
from telegram_bus.store import NewUpdate, open_store
from tests.botapi.test_poller import CONFLICT, ScriptedTelegram, updates
from tests.effort import examples
from tests.fakes import CHAT, FakeTelegram, message
from tests.roles.term_rig import Rig, running

ROOT: Final = Path(__file__).parent

PROVEN: Final[dict[int, tuple[str, ...]]] = {
    1: ("e2e/test_scenarios_leading.py::test_scenario_1_many_that_start_at_once_have_one_poller",),
    2: ("e2e/test_succession.py::test_three_followers_go_on_in_their_threads_when_the_leader_is_killed",),
    4: (
        "botapi/test_poller.py::test_lost_leadership_ends_it",
        "botapi/test_poller.py::test_what_could_not_be_stored_is_not_confirmed_and_comes_again",
        "roles/test_deliveries.py::test_a_lost_leadership_ends_the_deliveries",
    ),
    5: (
        "roles/test_leadership.py::test_a_frozen_leader_is_ended_in_order_or_else_by_force",
        "roles/test_starter.py::test_a_frozen_leader_is_ended_and_succeeded",
    ),
    7: (
        "core/test_election.py::test_any_difference_protects_a_process_from_our_signals",
        "test_host.py::test_another_birth_under_the_same_pid_is_a_death",
    ),
    8: ("core/test_election.py::test_any_difference_protects_a_process_from_our_signals",),
    11: (
        "test_locks.py::test_what_cannot_be_locked_is_refused_with_the_cure",
        "e2e/test_bad_input.py::test_it_is_refused_with_the_path_and_the_way_out_and_nothing_changes",
    ),
    16: (
        "botapi/test_poller.py::test_a_webhook_is_named_by_its_host_only",
        "botapi/test_poller.py::test_a_webhook_is_removed_only_when_a_person_wants_it",
    ),
    17: ("roles/test_starter.py::test_programs_that_a_follower_wraps_never_start_a_leader",),
    20: ("e2e/test_scenarios_leading.py::test_scenario_20_followers_return_whatever_becomes_of_their_leader",),
    22: ("e2e/test_scenarios_leading.py::test_scenario_22_a_leader_whose_terminal_closes_ends",),
    23: ("roles/test_starter.py::test_twenty_at_once_start_one_leader",),
    25: ("roles/test_member.py::test_an_update_is_acknowledged_with_its_receipt_once_it_is_stored",),
    26: ("e2e/test_scenarios_leading.py::test_scenario_26_a_batch_that_comes_again_is_handled_once",),
    28: ("e2e/test_scenarios_leading.py::test_scenario_28_a_backlog_is_kept_with_its_age_or_dropped_by_choice",),
    29: ("e2e/test_scenarios_leading.py::test_scenario_29_what_comes_while_its_owner_is_away_is_kept_and_told_once",),
    31: (
        "roles/test_calls.py::test_what_is_not_known_stays_so",
        "roles/test_outbox.py::test_scenario_31_unknown_is_told_once_and_sent_again_by_one_press",
        "e2e/test_sends_survive.py::test_scenario_31_what_perhaps_went_out_is_told_once_and_sent_again_by_a_press",
    ),
    32: (
        "roles/test_outbox.py::test_scenario_32_a_long_answer_goes_on_at_the_part_that_failed",
        "e2e/test_sends_survive.py::test_scenario_32_a_long_answer_goes_on_at_the_part_that_failed",
    ),
    35: (
        "roles/test_absences.py::test_a_backlog_is_delivered_and_its_age_is_told_once",
        "botapi/test_poller.py::test_a_backlog_is_dropped_only_when_a_person_wants_it_and_before_anything_is_delivered",
        "test_agent.py::test_an_update_says_how_old_it_is",
    ),
    37: (
        "e2e/test_handing.py::test_whoever_dies_at_whatever_step_the_work_is_done_once",
        "core/test_admission.py::test_a_handoff_needs_the_capability_of_all_three",
    ),
    40: ("roles/test_hearing.py::test_what_waits_twice_while_polls_are_empty_makes_a_bot_deaf",),
    41: (
        "roles/test_hearing.py::test_a_machine_that_slept_is_noticed_once",
        "botapi/test_poller.py::test_a_poll_whose_connection_is_doubted_is_made_anew",
        "core/test_election.py::test_an_observer_that_was_late_itself_starts_anew",
    ),
    43: ("botapi/test_transport.py::test_cut_json_and_pages_of_gateways_are_lost_answers",),
    44: ("botapi/test_poller.py::test_a_revoked_token_ends_nothing_and_is_tried_slowly",),
    46: (
        "botapi/test_transport.py::test_a_proxy_that_cannot_be_reached_is_named_without_its_password",
        "botapi/test_transport.py::test_calls_go_through_the_proxy_of_the_environment",
    ),
    47: ("botapi/test_transport.py::test_a_poll_has_a_connection_of_its_own_and_names_its_window",),
    49: (
        "botapi/test_sender_budget.py::test_a_pause_of_an_hour_parks_what_waits_drops_what_is_stale_and_is_told_afterwards",
    ),
    50: (
        "core/test_budget.py::test_ten_talkers_share_a_group_whatever_they_have_queued",
        "core/test_budget.py::test_finals_of_one_go_before_progress_of_others_but_never_before_ones_own_messages",
        "core/test_meters.py::test_no_window_of_the_server_holds_more_whatever_the_delay",
    ),
    52: (
        "roles/test_threads.py::test_scenario_52_forty_threads_come_back_without_a_call",
        "botapi/test_sender_budget.py::test_scenario_52_a_429_that_nobody_hears_of_mutes_nothing",
    ),
    53: ("roles/test_windows.py::test_scenario_53_a_successor_respects_the_pause_that_the_dead_leader_was_told",),
    58: ("roles/test_threads.py::test_scenario_58_topics_of_direct_messages_are_no_threads",),
    59: (
        "roles/test_visibility.py::test_scenario_59_a_wave_of_refusals_changes_nothing_and_is_waited_out",
        "e2e/test_scenarios_threads.py::test_scenario_59_a_wave_of_refusals_costs_no_thread",
    ),
    61: ("roles/test_outbox.py::test_scenario_61_a_message_in_another_thread_is_deleted_and_its_owner_hears_of_it",),
    62: ("roles/test_outbox.py::test_scenario_62_a_refused_thread_is_never_left_out",),
    64: ("botapi/test_sender_budget.py::test_scenario_64_what_is_already_as_it_should_be_is_a_success",),
    65: (
        "e2e/test_scenarios_threads.py::test_scenario_65_a_leader_killed_while_it_makes_a_thread_leaves_one",
        "e2e/test_scenarios_threads.py::test_scenario_65_a_thread_whose_answer_was_lost_is_not_made_twice",
        "roles/test_threads.py::test_after_two_minutes_of_polling_it_is_made_once_more",
    ),
    67: ("e2e/test_scenarios_threads.py::test_scenario_67_children_share_the_thread_and_a_clean_up_survives_a_kill",),
    68: ("e2e/test_scenarios_threads.py::test_scenario_68_two_with_one_name_and_directory_have_two_threads",),
    70: ("e2e/test_scenarios_threads.py::test_scenario_70_who_is_restarted_has_its_thread_and_another_one_has_not",),
    55: (
        "core/test_updates.py::test_scenario_55_general_is_no_thread_however_it_is_named",
        "roles/test_sharing.py::test_without_the_right_to_make_threads_those_that_have_one_keep_it",
    ),
    56: ("core/test_updates.py::test_a_thread_id_without_is_topic_message_is_a_reply_thread_and_no_topic",),
    71: (
        "roles/test_chooser.py::test_people_are_asked_once_and_everything_waits",
        "roles/test_chooser.py::test_who_is_chosen_gets_all_of_it_in_order_and_once",
        "roles/test_chooser.py::test_what_was_given_partly_goes_on_with_the_rest",
        "roles/test_chooser.py::test_a_successor_goes_on_with_the_question_and_does_not_ask_again",
        "e2e/test_browser.py::test_people_s_hands_in_a_private_chat",
    ),
    73: (
        "roles/test_bot.py::test_what_is_in_the_way_names_the_switch",
        "roles/test_sharing.py::test_people_are_told_once_what_to_switch_on_and_agents_come_without_a_thread",
        "roles/test_sharing.py::test_with_threads_again_each_agent_gets_its_own",
        "e2e/test_browser.py::test_people_s_hands_in_a_forum",
    ),
    74: (
        "roles/test_sharing.py::test_scenario_74_a_group_that_became_a_supergroup_takes_everything_along",
        "roles/test_sharing.py::test_scenario_74_a_leader_that_dies_before_the_move_leaves_it_to_the_next",
        "e2e/test_groups.py::test_scenario_74_a_plain_group_becomes_a_supergroup_and_everything_goes_on_there",
        "roles/test_outbox.py::test_scenario_74_a_call_into_an_upgraded_group_goes_out_once_in_the_supergroup",
        "roles/test_outbox.py::test_scenario_74_what_is_about_a_message_of_the_old_group_is_not_made_in_the_new_one",
        "e2e/test_group_agents.py::test_scenario_74_a_question_that_is_open_is_asked_again_in_the_supergroup",
        "roles/test_keyboards.py::test_scenario_74_a_question_is_asked_again_in_the_supergroup_and_its_answer_counts",
        "roles/test_keyboards.py::test_scenario_74_a_reply_in_the_supergroup_is_an_answer_and_what_was_answered_is_not_asked",
    ),
    76: (
        "roles/test_sharing.py::test_scenario_76_whoever_blocks_the_bot_is_left_alone_until_they_write",
        "roles/test_outbox.py::test_scenario_76_a_blocked_chat_is_parked_until_its_person_writes_again",
        "e2e/test_sends_survive.py::test_scenario_76_a_person_who_blocked_the_bot_gets_nothing_until_they_write_again",
    ),
    77: ("e2e/test_belonging.py::test_scenario_77_an_album_is_one_item_with_its_files_in_order_and_its_caption",),
    79: ("e2e/test_belonging.py::test_scenario_79_an_album_survives_the_death_of_its_leader_at_part_two_of_four",),
    80: ("e2e/test_belonging.py::test_scenario_80_a_text_that_the_client_split_is_one_item_as_it_was",),
    82: (
        "roles/test_edits.py::test_an_edit_changes_what_waits_for_an_absent_agent",
        "roles/test_edits.py::test_an_edit_of_what_was_delivered_is_delivered_too",
        "roles/test_unread.py::test_an_edit_of_a_part_that_waits_changes_the_item",
        "roles/test_member.py::test_an_edit_of_what_the_program_has_taken_is_another_update",
    ),
    83: ("roles/test_edits.py::test_an_edit_never_runs_a_command_of_the_leader",),
    85: (
        "core/test_parts.py::test_scenario_85_parts_fit_and_join_to_the_text_with_its_formatting",
        "core/test_markdown.py::test_whatever_it_is_telegram_takes_it",
        "e2e/test_contents.py::test_scenario_85_a_long_answer_in_markdown_arrives_whole_and_formatted",
        "test_sending.py::test_a_text_of_too_many_messages_is_a_file_with_its_beginning_above",
    ),
    86: (
        "core/test_parts.py::test_scenario_86_markup_that_is_longer_than_telegram_reads_is_read_before_it_is_cut",
        "e2e/test_contents.py::test_scenario_86_raw_text_above_32_kib_is_cut_before_its_markup_is_read",
    ),
    88: (
        "roles/test_follower_files.py::test_what_cannot_be_sent_is_refused_before_anything_is",
        "roles/test_follower_files.py::test_a_download_that_fails_says_why",
        "roles/test_follower_files.py::test_the_owner_of_the_bot_says_how_large_a_file_may_be",
        "roles/test_follower_files.py::test_a_download_goes_on_where_it_broke_off",
    ),
    89: (
        "roles/test_follower_files.py::test_scenario_89_whatever_a_file_is_called_it_lies_in_the_folder_and_replaces_none",
        "roles/test_follower_files.py::test_a_folder_that_is_full_takes_no_more_until_something_is_deleted",
        "core/test_files.py::test_no_name_leads_out_of_its_directory",
    ),
    91: (
        "roles/test_command_menu.py::test_scenario_91_the_owner_of_the_thread_gets_a_command_and_the_menu_only_names_it",
        "core/test_commands.py::test_where_it_would_be_too_long_each_keeps_its_first",
        "core/test_commands.py::test_a_command_of_several_stands_there_once_with_all_descriptions",
        "core/test_commands.py::test_what_telegram_would_refuse_is_refused_with_its_place",
    ),
    92: (
        "core/test_buttons.py::test_whatever_a_program_gives_a_button_telegram_gets_1_to_64_bytes",
        "e2e/test_asking.py::test_buttons_outlive_restart_and_succession_with_one_effect_a_press",
    ),
    94: (
        "roles/test_typing.py::test_it_ends_when_its_owner_dies",
        "roles/test_typing.py::test_it_ends_when_its_owner_sends_something",
        "e2e/test_asking.py::test_scenario_94_typing_ends_when_its_owner_is_killed",
    ),
    95: (
        "test_streams.py::test_scenario_95_a_chat_that_refuses_drafts_gets_edits_and_is_remembered",
        "e2e/test_contents.py::test_scenario_95_a_chat_that_refuses_drafts_sees_the_message_grow_by_edits",
    ),
    98: (
        "e2e/test_scenarios_security.py::test_scenario_98_the_token_is_in_no_output_whatever_goes_wrong",
        "botapi/test_uploads.py::test_the_faults_of_a_download_say_what_happened",
        "roles/test_audit.py::test_long_names_and_secrets_are_not_written",
    ),
    100: (
        "e2e/test_scenarios_security.py::test_scenario_100_another_user_of_the_machine_gets_nowhere",
        "wire/test_bus_server.py::test_a_peer_of_another_user_is_closed_at_once",
        "wire/test_bus_endpoint.py::test_socket_and_directory_are_for_their_owner_only",
    ),
    101: (
        "e2e/test_scenarios_security.py::test_scenario_101_what_is_another_s_is_refused_with_a_reason_noted_and_not_done",
        "core/test_policy_oracle.py::test_our_policy_allows_what_its_description_allows_and_nothing_else",
    ),
    103: (
        "wire/test_bus_fuzz.py::test_scenario_103_a_peer_that_sends_anything_costs_nobody_else_anything",
        "wire/test_bus_fuzz.py::test_scenario_103_a_line_without_an_end_is_not_kept",
    ),
}

ALL: Final = (
    *(1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23),
    *(25, 26, 28, 29, 31, 32, 34, 35, 37, 38, 40, 41, 43, 44, 46, 47),
    *(49, 50, 52, 53, 64, 58, 59, 61, 62, 65, 67, 68, 70, 74, 76),
    *(55, 56, 71, 73),
    *(77, 79, 80, 82, 83, 85, 86, 88, 89, 91, 92, 94, 95, 97, 98),
    *(100, 101, 103),
)


@pytest.mark.parametrize(("number", "tests"), PROVEN.items(), ids=[f"scenario_{number}" for number in PROVEN])
def test_the_test_that_proves_it_exists(number: int, tests: tuple[str, ...]) -> None:
    for test in tests:
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_no_number_is_missing() -> None:
    here = {
        int(number) for number in re.findall(r"^(?:async )?def test_scenario_(\d+)_", Path(__file__).read_text(), re.M)
    }
    assert sorted(here | PROVEN.keys()) == sorted(ALL)
    assert not here & PROVEN.keys()


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    profile = Home(tmp_path / "home").profile("default")
    profile.ensure()
    return profile


# -- one poller, election, death of a leader


async def test_scenario_10_a_killed_holder_leaves_nothing_behind_twenty_times(profile: Profile) -> None:
    loaded = load_settings(profile, {"chat": "12"}, {"TELEGRAM_BOT_TOKEN": "123:abcdefgh"})
    store_settings(profile, loaded)
    bot_lock_path(loaded).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    holder = (
        "import os, sys; from pathlib import Path; from telegram_bus.locks import FileLock\n"
        "held = [FileLock.try_lock(Path(path)) for path in sys.argv[1:]]\n"
        "os.kill(os.getpid(), 9 if all(held) else 15)"
    )
    command = [sys.executable, "-c", holder, str(profile.leader_lock), str(bot_lock_path(loaded))]
    for _ in range(20):
        died = await trio.run_process(command, check=False)
        assert died.returncode == -signal.SIGKILL
        with trio.fail_after(5):
            async with hold_leadership(profile, loaded) as term:
                term.check()


async def test_scenario_13_a_foreign_poller_makes_us_stand_down_and_say_so_once(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([[], [], [], *[CONFLICT] * 12])
    chat = FakeTelegram()
    notices = Notices(chat_id=CHAT, call=chat.call)
    states: list[str] = []

    async def commit(_batch: object, _offset: int) -> None:
        raise AssertionError

    def report(state: PollState) -> None:
        states.append(state.state)
        notices.note_polling(state)

    async with trio.open_nursery() as nursery:
        await nursery.start(notices.run)
        await trio.sleep(30)
        with trio.move_on_after(900):
            await run_poller(
                telegram,
                offset=0,
                commit=commit,
                report=report,
                jitter=lambda: 1.0,
            )
        nursery.cancel_scope.cancel("enough")
    assert states[-1] == "serving"
    assert "conflict" in states
    in_conflict = [when for when, _, _ in telegram.polls[3:15]]
    assert in_conflict[-1] - in_conflict[0] > 300  # slowly
    [said] = chat.made("sendMessage")
    assert "another program polls" in said["text"]


async def test_scenario_14_conflicts_right_after_a_start_are_waited_out(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([CONFLICT] * 10 + [updates(1)])
    states: list[str] = []
    stored: list[int] = []

    async def commit(_batch: object, offset: int) -> None:
        stored.append(offset)

    with trio.move_on_after(25):
        await run_poller(
            telegram, offset=0, commit=commit, report=lambda state: states.append(state.state), jitter=lambda: 1.0
        )
    assert stored == [2]
    assert set(states) == {"starting", "serving"}


async def test_scenario_19_an_owner_that_cannot_work_costs_nobody_else_an_update(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.broken = "broken"
    async with running(rig):
        await rig.agent("broken", 11)
        await rig.agent("sound", 12)
        for number in range(1, 11):
            await rig.take(message(number, thread=11 + number % 2))
        assert [update for key, update in rig.got if key == "sound"] == [1, 3, 5, 7, 9]
        await trio.sleep(REFUSALS * 10 * 6)
        rows = rig.rows()
    assert {outcome for _, key, outcome in rows if key == "broken"} == {"rejected"}
    assert {outcome for _, key, outcome in rows if key == "sound"} == {"accepted"}


# -- not losing and not doubling


_fuzzed: list[bytes] = []


def _a_journal() -> bytes:
    """The file of a store with a few updates, made once."""
    if not _fuzzed:
        with TemporaryDirectory() as directory:
            path = Path(directory, "db")

            async def make() -> None:
                async with open_store(path, holder="x") as store:
                    rows = [
                        NewUpdate(update_id=one, kind="message", body=b"x" * 50, owner_key="a") for one in range(30)
                    ]
                    await store.admit_batch(rows, 31, 1)

            trio.run(make)
            with closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            _fuzzed.append(path.read_bytes())
    return _fuzzed[0]


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_scenario_34_a_damaged_store_is_set_aside_or_refused_and_never_makes_a_traceback(data: st.DataObject) -> None:
    content = bytearray(_a_journal())
    if data.draw(st.booleans(), "cut"):
        del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 20), "bytes")):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with TemporaryDirectory() as directory:
        path = Path(directory, "db")
        path.write_bytes(content)
        path.chmod(0o600)

        told: list[str] = []

        async def use() -> None:
            async with open_store(path, holder="y") as store:
                told.append(store.notice or "sound")
                await store.admit_batch([NewUpdate(update_id=99, kind="message", body=b"new")], 100, 2)

        try:
            trio.run(use)
        except StateError as error:
            told.append(str(error))
        assert told[0] == "sound" or str(path) in told[0]
        assert str(path) in told[-1] or told == ["sound"]


async def test_scenario_38_a_late_press_lands_after_a_restart(mock_clock: MockClock) -> None:
    async with running(Rig()) as first:
        await first.agent("nora", 11)
        await first.term.store.record_messages("nora", [(CHAT, 500, 11)], 1)
    pressed = {
        "id": "q",
        "data": "yes",
        "from": {"id": 7},
        "message": {"message_id": 500, "chat": {"id": CHAT, "type": "supergroup"}},
    }
    async with running(Rig(earlier=first.commits)) as second:
        await second.take({"update_id": 5, "callback_query": pressed})
        await wait_all_tasks_blocked()
        mock_clock.jump(GRACE)
        await wait_all_tasks_blocked()
        await second.agent("nora", 11)
        await wait_all_tasks_blocked()
        assert second.got == [("nora", 5)]


# -- input and people


async def test_scenario_97_of_strangers_nothing_is_kept_gathered_or_fetched(autojump_clock: MockClock) -> None:
    rig = Rig()
    async with running(rig):
        await rig.agent("nora", 11)
        tables = list(rig.commits.db.iterdump())
        stranger = {"id": 666, "is_bot": False}
        photo: dict[str, Any] = {"media_group_id": "a", "photo": [{"file_id": "p", "width": 1, "height": 1}]}
        forward: dict[str, Any] = {"forward_origin": {"type": "hidden_user", "sender_user_name": "x", "date": 1}}
        await rig.take(*(message(number, sender=stranger, **photo) for number in (1, 2, 3)), offset=0)
        await rig.take(message(4, sender=stranger, text="x" * 4096), offset=0)
        await rig.take(message(5, sender=stranger), message(6, sender=stranger, **forward), offset=0)
        await trio.sleep(60)
        assert list(rig.commits.db.iterdump()) == tables
        assert rig.telegram.calls == []
        assert rig.got == []
        assert not rig.term.calls.files.belongs("p", "nora")
