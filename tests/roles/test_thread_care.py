"""What people do to threads by hand, and what agents hear of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from telegram_bus.core.bindings import Binding, CleanUp, Verdict
from telegram_bus.core.decisions import Call
from telegram_bus.core.envelopes import AgentSelector
from telegram_bus.core.errors import ApiError, RequestRefused, StateError
from telegram_bus.core.extensions import OperatorThreads
from telegram_bus.core.permissions import Allowed
from telegram_bus.locks import FileLock
from telegram_bus.roles import overview
from telegram_bus.roles.judging import _into_present_thread
from telegram_bus.roles.topic_names import place_of, wanted_name
from telegram_bus.roles.visibility import Visibility
from tests.fakes import CHAT, registration
from tests.roles.term_rig import Rig as TermRig
from tests.roles.term_rig import running as term_running
from tests.roles.thread_rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def ask(rig: Rig, action: str, *keys: str, **fields: Any) -> dict[str, Any]:
    request = OperatorThreads(request_id="1", action=action, keys=keys or None, **fields)
    return await rig.care.operate(request)


async def test_the_list_has_threads_what_is_being_made_and_what_shall_go(rig: Rig) -> None:
    """And says who is here."""
    nora, otto = await rig.agent("nora"), await rig.agent("otto")
    member = rig.registry.by_key("otto")
    assert member is not None
    rig.registry.remove(member)
    rig.waits["nora"] = 3
    book = rig.threads.book
    await rig.threads.note(book.closed(nora, closed=True) + book.intend("otto", "delete", "it left", 5))
    await rig.threads.note(book.begin("ida", "Ida", holder=None, now_ms=7))
    listed = await ask(rig, "list")
    assert [(one["key"], one["thread_id"], one["state"], one["here"], one["waiting"]) for one in listed["threads"]] == [
        ("nora", nora, "closed", True, 3),
        ("otto", otto, "open", False, 0),
    ]
    assert listed["making"] == [{"key": "ida", "name": "Ida", "since_ms": 7, "looked_for": 120.0}]
    assert [(one["key"], one["how"], one["why"]) for one in listed["clean_ups"]] == [("otto", "delete", "it left")]
    assert (listed["chat_id"], listed["outage"]) == (CHAT, None)


async def test_a_thread_gets_the_name_that_a_person_wants(rig: Rig) -> None:
    """Which is then a person's; no two are called the same."""
    thread = await rig.agent("nora")
    await rig.agent("otto")
    assert await ask(rig, "rename", "nora", name=" Build  server ") == {
        "key": "nora",
        "name": "Build server",
        "thread_id": thread,
    }
    assert rig.telegram.topics[thread] == "Build server"
    assert rig.threads.book.bindings["nora"].by_person
    assert (await ask(rig, "rename", "nora", name="Build server"))["name"] == "Build server"
    for keys, name, why in (
        (["nora"], "OTTO", "another thread is called"),
        (["nora"], " ", "needs a name"),
        (["ida"], "Ida", "no follower 'ida'"),
        ([], "x", "exactly one"),
        (["nora", "otto"], "x", "exactly one"),
    ):
        with pytest.raises(RequestRefused, match=why):
            await ask(rig, "rename", *keys, name=name)
    del rig.telegram.topics[thread]
    with pytest.raises(ApiError):
        await ask(rig, "rename", "nora", name="other")
    assert rig.threads.book.bindings["nora"].name == "Build server"


async def test_who_is_unbound_gets_a_new_thread_and_not_the_old_one(rig: Rig) -> None:
    """Although it names that when it registers again."""
    thread = await rig.agent("nora")
    assert (await ask(rig, "unbind", "nora"))["thread_id"] == thread
    assert rig.reseated == ["nora"]
    given = await rig.threads.provide(registration("nora", thread_name="nora", thread=thread))
    assert given.target.thread_id != thread
    assert thread in rig.telegram.topics


async def test_a_thread_can_be_given_to_who_has_none_yet_only_if_it_is_known(rig: Rig) -> None:
    """The thread has to be there."""
    with pytest.raises(RequestRefused, match="no follower 'ida' is known"):
        await ask(rig, "bind", "ida", thread_id=300)
    await rig.agent("nora")
    with pytest.raises(RequestRefused, match="a number above 1"):
        await ask(rig, "bind", "nora", thread_id=1)
    rig.telegram.results["editForumTopic"] = ApiError("editForumTopic", 400, "Bad Request: the chat is not a forum")
    with pytest.raises(RequestRefused, match="is not known"):
        await ask(rig, "bind", "nora", thread_id=300)


async def test_a_bind_that_a_full_disk_cut_short_is_completed_when_it_is_asked_for_again(rig: Rig) -> None:
    """The book is ahead of the disk by then; who had the thread, and who gets it, have to hear of it all the same."""
    await rig.agent("nora")
    thread = await rig.agent("otto")
    rig.commits.fault = StateError("the disk is full")
    with pytest.raises(StateError):
        await ask(rig, "bind", "nora", thread_id=thread)
    rig.commits.fault = None
    assert (await ask(rig, "bind", "nora", thread_id=thread))["thread_id"] == thread
    assert (rig.reseated, rig.moved) == (["otto"], [("nora", thread)])
    assert [(row.key, row.thread_id) for row in await rig.stored()] == [("nora", thread)]


async def test_who_is_unbound_while_the_disk_is_full_registers_again(rig: Rig) -> None:
    await rig.agent("nora")
    rig.commits.fault = StateError("the disk is full")
    with pytest.raises(StateError):
        await ask(rig, "unbind", "nora")
    assert rig.reseated == ["nora"]


async def test_a_thread_that_is_cleaned_up_meanwhile_is_no_reason_to_prove_no_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("nora", "otto", "ida"):
        await rig.agent(key)
    prove = rig.visibility.prove

    async def prove_slowly(binding: Binding) -> Verdict:
        if binding.key == "nora":
            await rig.threads.note(rig.threads.book.unbind("otto"))
        return await prove(binding)

    monkeypatch.setattr(Visibility, "prove", lambda _self, binding: prove_slowly(binding))
    assert await ask(rig, "sync") == {"there": ["nora", "ida"], "gone": [], "unknown": [], "left": []}
    with pytest.raises(RequestRefused, match="no follower 'otto'"):
        await ask(rig, "sync", "otto")


async def test_all_threads_are_proven_and_those_that_are_gone_are_parked(rig: Rig) -> None:
    """And one that was thought to be gone is found again."""
    threads = {key: await rig.agent(key) for key in ("nora", "otto", "ida")}
    del rig.telegram.topics[threads["otto"]]
    await rig.threads.note(rig.threads.book.parked(threads["ida"], 1))
    assert await ask(rig, "sync") == {"there": ["nora", "ida"], "gone": ["otto"], "unknown": [], "left": []}
    assert [one.key for one in rig.threads.all() if one.gone_ms is not None] == ["otto"]
    assert await ask(rig, "sync", "nora") == {"there": ["nora"], "gone": [], "unknown": [], "left": []}


async def test_what_time_does_not_allow_is_left(rig: Rig, autojump_clock: MockClock) -> None:
    """Who asked asks for the rest."""
    await rig.agent("nora")
    rig.telegram.gate = trio.Event()
    assert await ask(rig, "sync") == {"there": [], "gone": [], "unknown": [], "left": ["nora"]}


async def test_only_threads_of_those_that_are_gone_are_cleaned_up(rig: Rig) -> None:
    """A dry run shows which."""
    threads = {key: await rig.agent(key) for key in ("here", "gone", "asleep", "waited-for")}
    for key in ("gone", "asleep", "waited-for"):
        member = rig.registry.by_key(key)
        assert member is not None
        rig.registry.remove(member)
    rig.waits["waited-for"] = 1
    rig.profile.ensure()
    rig.profile.ensure_follower("asleep")
    kept = {"here": "it is here", "asleep": "its process lives", "waited-for": "messages wait for it"}
    with FileLock.try_lock(rig.profile.inbox_lock("asleep")):  # type: ignore[union-attr]
        with pytest.raises(RequestRefused, match="--how delete"):
            await ask(rig, "clean")
        dry = await ask(rig, "clean", how="delete", dry_run=True)
        assert dry == {"how": "delete", "done": [], "left": ["gone"], "kept": kept}
        assert not [row for row in await rig.stored() if isinstance(row, CleanUp)]
        done = await ask(rig, "clean", how="delete")
    assert done == {"how": "delete", "done": ["gone"], "left": [], "kept": kept}
    assert sorted(rig.telegram.topics) == sorted(threads[key] for key in kept)
    assert (await ask(rig, "clean", "here", how="close"))["kept"] == {"here": "it is here"}


async def test_an_unknown_action_is_refused(rig: Rig) -> None:
    with pytest.raises(RequestRefused, match="'burn'"):
        await ask(rig, "burn")


# -- what a term makes of it


async def test_output_into_a_deleted_thread_goes_into_the_new_one_and_its_agent_is_moved() -> None:
    """All calls of it from then on are judged by the new one."""
    async with term_running(TermRig()) as rig:
        await rig.agent("nora", 11)
        await rig.term.threads.note(rig.term.threads.book.parked(11, 1))
        member = rig.term.registry.by_key("nora")
        assert member is not None
        call = Allowed(method="call", args=("sendMessage", {"chat_id": CHAT, "message_thread_id": 11, "text": "x"}))
        typing = Allowed(method="call", args=("sendChatAction", {"chat_id": CHAT, "message_thread_id": 11}))
        assert await rig.term.places.in_place(member, typing) is typing
        placed = await rig.term.places.in_place(member, call)
        moved = rig.term.registry.by_key("nora")
        assert moved is not None
        assert moved.target is not None
        assert placed.body["message_thread_id"] == moved.target.thread_id != 11
        assert rig.term.threads.of_thread(CHAT, 11) is None
        late = _into_present_thread(Call(member=moved, method="call", args=call.args))
        assert late.args[1]["message_thread_id"] == moved.target.thread_id
        again = attrs.evolve(call, args=("sendMessage", {"chat_id": CHAT, "message_thread_id": "101", "text": "x"}))
        assert await rig.term.places.in_place(moved, again) is again


async def test_an_agent_does_not_rename_a_thread_that_a_person_has_named() -> None:
    """Its call goes out with that name: whether the thread is there, and an icon, are its business."""
    async with term_running(TermRig()) as rig:
        await rig.agent("nora", 11)
        member = rig.term.registry.by_key("nora")
        assert member is not None
        body = {"chat_id": CHAT, "message_thread_id": "11", "name": "busy", "icon_custom_emoji_id": "5"}
        edit = Allowed(method="call", args=("editForumTopic", body))
        assert await rig.term.places.in_place(member, edit) is edit
        await rig.term.threads.note(rig.term.threads.book.renamed(11, "My Nora", by_person=True))
        assert (await rig.term.places.in_place(member, edit)).body == {**body, "name": "My Nora"}
        icon = Allowed(method="call", args=("editForumTopic", {**body, "name": ""}))
        assert await rig.term.places.in_place(member, icon) is icon


async def test_an_agent_is_found_by_the_name_that_a_person_gave_its_thread() -> None:
    """At once."""
    async with term_running(TermRig()) as rig:
        rig.term.threads.named = rig.term.places.note_name
        await rig.agent("nora", 11)
        await rig.agent("otto", 12)
        renamed = {
            "message_thread_id": 11,
            "is_topic_message": True,
            "chat": {"id": CHAT},
            "from": {"id": 7},
            "forum_topic_edited": {"name": "Chief"},
        }
        await rig.term.threads.heard([{"update_id": 1, "message": renamed}], 42)
        asker = rig.term.registry.by_key("otto")
        assert asker is not None
        assert (await rig.term.resolve(asker, AgentSelector(thread_name="chief"))).target.thread_id == 11


async def test_an_outage_of_threads_is_a_state_that_people_see() -> None:
    """With what it means for them."""
    async with term_running(TermRig()) as rig:
        rig.term.threads.note_outage("3 threads are gone at once")
        assert ("threads lost", "3 threads are gone at once") in [
            (one.state, one.detail) for one in overview.conditions(rig.term)
        ]
        rig.term.threads.note_outage(None)
        assert "threads lost" not in [one.state for one in overview.conditions(rig.term)]


# -- names


async def test_a_template_names_threads_by_project_and_branch(tmp_path: Path) -> None:
    """As far as they are known."""
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/feature/cart\n")
    (project / "src").mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {project / '.git'}\n")
    assert place_of(str(project / "src")) == ("shop", "feature/cart")
    assert place_of(str(tree)) == ("tree", "feature/cart")
    (project / ".git" / "HEAD").write_text("3f2a9c\n")
    assert place_of(str(project)) == ("shop", "")
    assert place_of("relative") == ("", "")

    def told(**fields: Any) -> Any:
        return attrs.evolve(registration("nora"), **fields)

    assert await wanted_name("{name}", told(thread_name="Nora")) == "Nora"
    assert await wanted_name("{project}: {name} ({branch})", told(thread_name="Nora", cwd=str(project))) == "shop: Nora"
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert await wanted_name("{name} · {project} ({branch})", told(cwd=str(project))) == "shop (main)"
    assert await wanted_name("[{project}]", told()) is None
