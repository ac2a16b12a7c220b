"""The poller on a virtual clock, against a Telegram that a test scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from telegram_bus.botapi.poller import Order, Renewal, run_poller
from telegram_bus.botapi.polling import PollState
from telegram_bus.core.errors import AnswerLost, ApiError, LeadershipLost, NotSent, StateError

CONFLICT = ApiError("getUpdates", 409, "Conflict: terminated by other getUpdates request; make sure that only one ...")
WEBHOOK = ApiError("getUpdates", 409, "Conflict: can't use getUpdates method while webhook is active; use ...")

Answer = list[Any] | Exception | Callable[[], list[Any]]


def updates(*numbers: int) -> list[dict[str, Any]]:
    return [{"update_id": number} for number in numbers]


@define
class ScriptedTelegram:
    """Answers the polls in order; an empty answer takes the whole window, and so does every later poll."""

    script: list[Any]
    webhook: Any = None
    polls: list[tuple[float, int, float]] = field(factory=list)
    last: Any = None
    calls: list[tuple[str, dict[str, Any]]] = field(factory=list)

    async def poll(self, params: Mapping[str, Any], window: float) -> Any:
        assert "message_reaction" in params["allowed_updates"]
        self.polls.append((trio.current_time(), params["offset"], window))
        answer = self.script.pop(0) if self.script else (self.last or [])
        if isinstance(answer, Exception):
            raise answer
        if answer == "hang":
            await trio.sleep_forever()
        if answer == []:
            await trio.sleep(window)
        await trio.lowlevel.checkpoint()
        return answer

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        self.calls.append((method, dict(params or {})))
        if method == "deleteWebhook":
            return True
        assert method == "getWebhookInfo"
        if isinstance(self.webhook, Exception):
            raise self.webhook
        return self.webhook


@define
class Watched:
    """What the poller did."""

    batches: list[tuple[list[int], int]] = field(factory=list)
    states: list[PollState] = field(factory=list)
    faults: list[Exception] = field(factory=list)

    async def commit(self, batch: list[dict[str, Any]], next_offset: int) -> None:
        await trio.lowlevel.checkpoint()
        if self.faults:
            raise self.faults.pop(0)
        self.batches.append(([update["update_id"] for update in batch], next_offset))

    @property
    def names(self) -> list[str]:
        """The states in the order in which they were entered."""
        found: list[str] = []
        for state in self.states:
            if not found or found[-1] != state.state:
                found.append(state.state)
        return found


async def run(
    telegram: ScriptedTelegram, seconds: float, watched: Watched | None = None, offset: int = 0, **wanted: Any
) -> Watched:
    watched = watched or Watched()
    with trio.move_on_after(seconds):
        await run_poller(
            telegram, offset=offset, commit=watched.commit, report=watched.states.append, jitter=lambda: 1.0, **wanted
        )
    return watched


async def test_each_poll_confirms_what_was_stored_before_it(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([updates(5, 6), updates(7), []])
    watched = await run(telegram, 60)
    assert watched.batches == [([5, 6], 7), ([7], 8)]
    assert [offset for _, offset, _ in telegram.polls] == [0, 7, 8, 8, 8]


async def test_it_goes_on_from_the_stored_offset(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([])
    await run(telegram, 1, offset=42)
    assert telegram.polls[0][1] == 42


async def test_nothing_is_polled_while_a_batch_is_being_stored(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([updates(1), updates(2)])

    async def slow(_batch: list[dict[str, Any]], _next_offset: int) -> None:
        await trio.sleep(10)

    with trio.move_on_after(25):
        await run_poller(telegram, offset=0, commit=slow, report=lambda _: None)
    assert [time - telegram.polls[0][0] for time, _, _ in telegram.polls] == [0, 10, 20]


async def test_the_first_poll_does_not_wait_so_that_serving_is_known_at_once(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([])
    watched = await run(telegram, 100)
    begun = telegram.polls[0][0]
    assert watched.states[0].state == "serving"
    assert watched.states[0].since == begun
    assert [window for _, _, window in telegram.polls] == [0, 25, 25, 25, 25]
    assert [state.last_completed for state in watched.states] == [begun, begun + 25, begun + 50, begun + 75]


async def test_ids_that_start_anew_lower_are_followed(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([updates(900), updates(7)])
    watched = await run(telegram, 10)
    assert watched.batches == [([900], 901), ([7], 8)]
    assert telegram.polls[2][1] == 8


async def test_an_odd_update_holds_up_nobody(autojump_clock: MockClock) -> None:
    watched = await run(ScriptedTelegram([[None, {"update_id": "x"}, *updates(3)], updates(4)]), 10)
    assert watched.batches == [([3], 4), ([4], 5)]


async def test_updates_that_can_never_be_confirmed_cause_no_storm(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([], last=[{"no": "id"}])
    watched = await run(telegram, 600)
    assert watched.names == ["offline"]
    assert len(telegram.polls) < 40


async def test_an_outage_is_shown_and_ends_by_itself(autojump_clock: MockClock) -> None:
    faults = [NotSent("getUpdates was not sent: no route"), AnswerLost("cut"), AnswerLost("HTTP 502")]
    watched = await run(ScriptedTelegram([updates(1), *faults, updates(2)]), 30)
    assert watched.names == ["serving", "offline", "serving"]
    assert watched.batches == [([1], 2), ([2], 3)]
    offline = next(state for state in watched.states if state.state == "offline")
    assert offline.detail == "getUpdates was not sent: no route"
    assert offline.last_completed is not None


async def test_a_pause_is_kept_exactly(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([ApiError("getUpdates", 429, "Too Many Requests", retry_after=33), updates(1)])
    watched = await run(telegram, 40)
    assert telegram.polls[1][0] - telegram.polls[0][0] == 33
    assert watched.names == ["rate-limited", "serving"]


async def test_a_predecessors_poll_is_waited_out(autojump_clock: MockClock) -> None:
    watched = await run(ScriptedTelegram([CONFLICT, CONFLICT, updates(1)]), 20)
    assert watched.names == ["starting", "serving"]


async def test_another_poller_makes_us_stand_down_and_try_slowly_until_it_is_gone(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([[], []], last=CONFLICT)
    watched = await run(telegram, 600)
    assert watched.names[-1] == "conflict"
    assert "stood down" in (watched.states[-1].detail or "")
    times = [time for time, _, _ in telegram.polls]
    assert [later - earlier for earlier, later in zip(times[-5:], times[-4:], strict=False)] == [60.0] * 4
    telegram.last = None
    watched = await run(telegram, 600, watched)
    assert watched.names[-1] == "serving"


async def test_a_webhook_is_named_by_its_host_only(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([WEBHOOK, updates(1)], webhook={"url": "https://hooks.example.org/secret/path"})
    watched = await run(telegram, 100)
    assert watched.names == ["webhook", "serving"]
    detail = watched.states[0].detail or ""
    assert "hooks.example.org" in detail
    assert "secret" not in detail
    assert telegram.polls[1][0] - telegram.polls[0][0] == 60


@pytest.mark.parametrize("info", [NotSent("x"), {"url": ""}, {}, None, {"url": "http://[::1"}, {"url": 5}])
async def test_a_webhook_whose_host_cannot_be_learnt_is_still_named(info: Any, autojump_clock: MockClock) -> None:
    watched = await run(ScriptedTelegram([WEBHOOK], webhook=info), 10)
    assert "webhook" in (watched.states[0].detail or "")


async def test_a_revoked_token_ends_nothing_and_is_tried_slowly(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([], last=ApiError("getUpdates", 401, "Unauthorized"))
    watched = await run(telegram, 601)
    assert watched.names == ["unauthorised"]
    assert len(watched.states) == 1
    assert len(telegram.polls) == 11


async def test_a_poll_that_hangs_is_given_up_after_three_windows(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([updates(1), "hang", updates(2)])
    watched = await run(telegram, 100)
    assert telegram.polls[2][0] - telegram.polls[1][0] == 75.5
    assert watched.names == ["serving", "offline", "serving"]
    assert watched.batches[-1] == ([2], 3)


async def test_what_could_not_be_stored_is_not_confirmed_and_comes_again(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([updates(1, 2), updates(1, 2)])
    watched = await run(telegram, 20, Watched(faults=[StateError("no space left")]))
    assert [offset for _, offset, _ in telegram.polls][:3] == [0, 0, 3]
    assert watched.batches == [([1, 2], 3)]
    assert watched.names == ["storage", "serving"]


async def test_lost_leadership_ends_it(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([updates(1)])
    with pytest.raises(LeadershipLost):
        await run(telegram, 20, Watched(faults=[LeadershipLost("epoch 1 is over")]))
    assert len(telegram.polls) == 1


async def test_a_network_that_breaks_every_long_poll_is_tried_ever_more_slowly(autojump_clock: MockClock) -> None:
    class Impatient(ScriptedTelegram):
        async def poll(self, params: Mapping[str, Any], window: float) -> Any:
            await trio.lowlevel.checkpoint()
            self.polls.append((trio.current_time(), 0, window))
            if window:
                raise AnswerLost("the proxy ended it")
            return []

    telegram = Impatient([])
    watched = await run(telegram, 600)
    assert {"serving", "offline"} == set(watched.names)
    assert len(telegram.polls) < 60


async def test_a_server_that_never_waits_is_not_hammered(autojump_clock: MockClock) -> None:
    class Hasty(ScriptedTelegram):
        async def poll(self, params: Mapping[str, Any], window: float) -> Any:
            await trio.lowlevel.checkpoint()
            self.polls.append((trio.current_time(), 0, window))
            return []

    telegram = Hasty([])
    await run(telegram, 10)
    assert len(telegram.polls) <= 22


async def test_a_backlog_is_dropped_only_when_a_person_wants_it_and_before_anything_is_delivered(
    autojump_clock: MockClock,
) -> None:
    telegram = ScriptedTelegram([updates(41), updates(42), []])
    watched = await run(telegram, 30, order=Order(drop_backlog=True))
    assert watched.batches == [([], 42), ([42], 43)]
    assert [offset for _, offset, _ in telegram.polls][:3] == [-1, 42, 43]


async def test_dropping_waits_for_the_network_and_for_the_disk(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([NotSent("no network"), updates(41), updates(41), []])
    watched = await run(telegram, 30, Watched(faults=[StateError("the disk is full")]), order=Order(drop_backlog=True))
    assert watched.batches == [([], 42)]
    assert [offset for _, offset, _ in telegram.polls][:4] == [-1, -1, -1, 42]


async def test_where_nothing_waits_nothing_is_dropped(autojump_clock: MockClock) -> None:
    telegram = ScriptedTelegram([[], updates(5)])
    watched = await run(telegram, 30, offset=3, order=Order(drop_backlog=True))
    assert watched.batches == [([], 3), ([5], 6)]


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_webhook_is_removed_only_when_a_person_wants_it(autojump_clock: MockClock, wanted: bool) -> None:
    telegram = ScriptedTelegram([WEBHOOK, updates(1)], webhook={"url": "https://hooks.example.org/secret"})
    watched = await run(telegram, 30, order=Order(delete_webhook=wanted))
    removed = [params for method, params in telegram.calls if method == "deleteWebhook"]
    assert removed == ([{"drop_pending_updates": False}] if wanted else [])
    assert watched.batches == ([([1], 2)] if wanted else [])
    assert ("webhook" in watched.names) is not wanted


async def test_a_poll_whose_connection_is_doubted_is_made_anew(autojump_clock: MockClock) -> None:
    telegram, renewal, watched = ScriptedTelegram([[], "hang", updates(1)]), Renewal(), Watched()
    renewal.ask("nothing is on its way")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: run(telegram, 60, watched, renewal=renewal))
        await trio.sleep(10)
        renewal.ask("this machine slept")
    assert watched.batches == [([1], 2)]
    [offline] = [state for state in watched.states if state.state == "offline"]
    assert offline.detail == "getUpdates: this machine slept; the connection is made anew"
