"""The role loop of a follower, against a leader on a real socket: registered, forgotten, bereft, refused, and back."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from attrs import define, field

from telegram_bus.core.codec import loads
from telegram_bus.core.envelopes import (
    Ack,
    AckError,
    CallApi,
    Delivery,
    Disconnect,
    Envelope,
    ForwardEditedMessage,
    ForwardMessage,
    Heartbeat,
    Register,
    ReplaceFollowerTarget,
    Target,
)
from telegram_bus.core.errors import ApiError, CommitUnknown, NoLeader, RequestRefused, StateError, single_fault
from telegram_bus.core.extensions import MembersList
from telegram_bus.core.identity import DURABLE_ADMISSION, delivery_id, ours
from telegram_bus.home import Profile
from telegram_bus.roles import member as member_module
from telegram_bus.roles import unread as unread_module
from telegram_bus.roles.member import Member
from telegram_bus.roles.seat import HeldSeat, hold_seat
from telegram_bus.store import Inbox
from telegram_bus.wire.client import request_once
from tests.fakes import CHAT, FakeLeader, InlineCommits, memory_inbox, ok, refuse


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's pauses, shortened; what is tested is that they end."""
    monkeypatch.setattr(member_module, "HEARTBEAT", 0.01)
    monkeypatch.setattr(member_module, "REFUSED_PAUSE", 0.02)
    monkeypatch.setattr(member_module, "MAINTENANCE", 0.02)


@pytest.fixture
def seat(bus_profile: Profile) -> Iterator[HeldSeat]:
    with hold_seat(bus_profile, "nora") as seat:
        yield seat


@define(eq=False)
class Rig:
    """A member that runs, and the leader that it may find."""

    profile: Profile
    leader: FakeLeader
    member: Member
    commits: InlineCommits
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    left: trio.Event = field(factory=trio.Event)

    async def wait(self, phase: str, reason: str = "") -> None:
        """Wait for a state."""
        await self.member.state.wait_for(lambda s: s.phase == phase and reason in (s.reason or ""))

    async def ask(self) -> Ack:
        """A call of the program."""
        return await self.member.ask(
            lambda fields: CallApi(**fields, method="call", args=("sendMessage", {"text": "hi"}))
        )

    @property
    def endpoint(self) -> Path:
        return self.profile.run_dir / "nora.sock"

    async def deliver(self, number: int = 1, **changes: Any) -> Ack:
        """What the leader sends to the endpoint: an update, as the registration of this moment wants it."""
        return await request_once(self.endpoint, attrs.evolve(self.update(number), **changes))

    async def deliver_edit(self, number: int, of: int, text: str) -> Ack:
        """An edit of the message that update `of` brought."""
        plain = self.update(number)
        delivery = attrs.evolve(plain.delivery, delivery_id=delivery_id("leader.forwardEditedMessage", "nora", number))
        fields = attrs.asdict(plain, recurse=False) | {"delivery": delivery, "message": _edited(number, of, text)}
        del fields["forward_comment_batch_position"]
        return await request_once(self.endpoint, ForwardEditedMessage(**fields))

    def update(self, number: int) -> ForwardMessage:
        last = self.leader.of(Register)[-1]
        return ForwardMessage(
            request_id=f"d{number}",
            auth=self.leader.secret,
            recipient_instance_id=last.registration.instance_id,
            recipient_registration_generation=last.registration.registration_generation or "",
            delivery=Delivery(
                delivery_id=delivery_id("leader.forwardMessage", "nora", number),
                source_update_id=number,
                recipient_binding_key="nora",
            ),
            sent_at_ms=1,
            message=_edited(number, number, f"text {number}"),
        )


def _edited(number: int, of: int, text: str) -> dict[str, Any]:
    chat = {"id": CHAT}
    return {"text": text, "message_id": of, "chat": chat, "pi_telegram_source_update_id": number}


def member_for(profile: Profile, seat: HeldSeat, inbox: Inbox) -> Member:
    return Member(profile=profile, seat=seat, inbox=inbox, identity=ours("1"), thread_name="Nora", start_leader=False)


@pytest.fixture
async def rig(bus_profile: Profile, seat: HeldSeat) -> AsyncIterator[Rig]:
    """A member whose leader has not been started."""
    inbox, commits = memory_inbox()
    async with trio.open_nursery() as nursery:
        leader = FakeLeader(bus_profile, nursery)
        rig = Rig(bus_profile, leader, member_for(bus_profile, seat, inbox), commits)

        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            with rig.scope:
                await rig.member.run(task_status=task_status)
            rig.left.set()

        await nursery.start(run)
        yield rig
        nursery.cancel_scope.cancel("the test is over")


@pytest.fixture
async def served(rig: Rig) -> Rig:
    """A member that is registered."""
    await rig.leader.start()
    await rig.wait("serving")
    return rig


async def test_without_a_leader_it_waits_and_says_so(rig: Rig) -> None:
    """It starts none where it may not, and is served once there is one."""
    await rig.wait("no leader", "this process starts none")
    await rig.leader.start()
    await rig.wait("serving")
    assert rig.member.state.value.reason is None


async def test_it_registers_with_all_that_a_leader_needs(served: Rig, seat: HeldSeat) -> None:
    """And takes the place that it is given."""
    (asked,) = served.leader.of(Register)
    told = asked.registration
    assert (told.instance_id, told.profile_key, told.thread_name) == (seat.instance_id, "nora", "Nora")
    assert (told.pid, told.process_birth_id, told.cwd) == (seat.pid, seat.birth_id, str(Path.cwd()))
    assert told.bus_socket_path == str(served.endpoint)
    assert told.registration_generation == asked.request_id
    assert told.protocol == ours("1")
    assert told.target is None
    assert served.member.target.value == Target(chat_id=CHAT, thread_id=11)


async def test_it_beats_one_at_a_time_with_its_generation(served: Rig) -> None:
    """For as long as it is registered."""
    beats = await served.leader.wait_got(Heartbeat, 3)
    (asked,) = served.leader.of(Register)
    assert {beat.registration_generation for beat in beats} == {asked.registration.registration_generation}
    assert len({beat.request_id for beat in beats}) == len(beats)


async def test_a_leader_that_forgot_it_gets_a_new_registration(served: Rig) -> None:
    """Under a new generation, with the thread that it had."""
    await served.leader.wait_got(Heartbeat)
    served.leader.known.clear()
    first, second = await served.leader.wait_got(Register, 2)
    assert first.registration.registration_generation != second.registration.registration_generation
    assert second.registration.target == Target(chat_id=CHAT, thread_id=11)
    await served.wait("serving")


async def test_a_killed_leader_is_replaced_by_whoever_comes(served: Rig) -> None:
    """Whatever was under way then: here a heartbeat that is never answered."""
    hanging = trio.Event()
    served.leader.replies["follower.heartbeat"] = lambda _: hanging.set()
    await hanging.wait()
    await served.leader.stop()
    await served.wait("no leader")
    assert served.member.session.value is None
    del served.leader.replies["follower.heartbeat"]
    await served.leader.start()
    await served.wait("serving")
    assert served.leader.of(Register)[-1].registration.target == Target(chat_id=CHAT, thread_id=11)


async def test_a_silent_leader_is_looked_into(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is given up after a while, and whoever answers is asked to register."""
    monkeypatch.setattr(member_module, "SILENCE", 0.05)
    rig.leader.replies["follower.heartbeat"] = lambda _: None
    await rig.leader.start()
    await rig.leader.wait_got(Register, 2)


async def test_a_call_waits_for_a_leader(rig: Rig) -> None:
    """And is made once there is one."""
    await rig.wait("no leader")
    acks: list[Ack] = []

    async def ask() -> None:
        acks.append(await rig.ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await rig.leader.start()
    assert acks[0].ok
    assert len(rig.leader.of(CallApi)) == 1


async def lose_the_answer(rig: Rig, ask: Callable[[], Any]) -> None:
    """The leader takes a call and dies; another one follows."""
    rig.leader.replies["follower.callApi"] = lambda _: None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await rig.leader.wait_got(CallApi)
        await rig.leader.stop()
        del rig.leader.replies["follower.callApi"]
        await rig.leader.start()


async def test_a_lost_answer_is_asked_for_again_under_the_same_id(served: Rig) -> None:
    """The next leader knows whether the call was made."""
    acks: list[Ack] = []

    async def ask() -> None:
        acks.append(await served.ask())

    await lose_the_answer(served, ask)
    first, second = served.leader.of(CallApi)
    assert first.request_id == second.request_id
    assert first.registration_generation != second.registration_generation
    assert acks[0].ok


async def test_a_leader_that_remembers_no_calls_is_not_asked_twice(rig: Rig) -> None:
    """Nobody can tell then whether it was made."""
    rig.leader.identity = ours("1", [DURABLE_ADMISSION])
    await rig.leader.start()
    await rig.wait("serving")

    async def ask() -> None:
        with pytest.raises(CommitUnknown):
            await rig.ask()

    await lose_the_answer(rig, ask)
    assert len(rig.leader.of(CallApi)) == 1


async def test_a_call_of_a_forgotten_registration_is_made_after_the_next_one(served: Rig) -> None:
    """The refusal is not the program's concern."""
    served.leader.replies["follower.callApi"] = _only_known(served.leader)
    served.leader.replies["follower.heartbeat"] = _only_known(served.leader)
    served.leader.known.clear()
    assert (await served.ask()).ok
    first, *_, last = served.leader.of(CallApi)
    assert first.request_id == last.request_id


async def test_a_call_in_the_moment_of_the_leaders_death_reaches_the_next(served: Rig) -> None:
    """Also one that asks, when it is refused, whether it is still known."""
    await served.leader.stop()
    acks: list[Ack] = []

    async def ask() -> None:
        acks.append(await served.ask())

    def refuse_and_die(envelope: Envelope) -> Ack:
        nursery.start_soon(succeed, len(served.leader.of(Heartbeat)) + 1)  # counted now: one may come before that runs
        served.leader.replies["follower.heartbeat"] = lambda _: None
        return refuse(envelope, "no")

    async def succeed(beats: int) -> None:
        await served.leader.wait_got(Heartbeat, beats)
        await served.leader.stop()
        served.leader.replies.clear()
        await served.leader.start()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)  # before the member knows that its leader is gone
        await trio.lowlevel.checkpoint()
        served.leader.replies["follower.callApi"] = refuse_and_die
        await served.leader.start()
    assert [ack.ok for ack in acks] == [True]
    assert len({call.request_id for call in served.leader.of(CallApi)}) == 1


def _only_known(leader: FakeLeader) -> Callable[[Envelope], Ack]:
    def answer(envelope: Envelope) -> Ack:
        assert isinstance(envelope, CallApi | Heartbeat)
        return ok(envelope) if envelope.registration_generation in leader.known else refuse(envelope, "who are you")

    return answer


@pytest.mark.parametrize(
    ("error", "result", "expected"),
    [
        (None, None, RequestRefused),
        (AckError(code="commit-unknown"), None, CommitUnknown),
        (AckError(code="request-id-collision"), None, RequestRefused),
        (None, {"apiError": {"method": "sendMessage", "code": 400, "description": "Bad Request: x"}}, ApiError),
    ],
)
async def test_a_refused_call_raises_what_it_says(
    served: Rig, error: AckError | None, result: Any, expected: type[Exception]
) -> None:
    """Once the registration is known to stand, and without asking again."""
    served.leader.replies["follower.callApi"] = lambda e: refuse(e, "no such message", error, result)
    with pytest.raises(expected) as caught:
        await served.ask()
    assert type(caught.value) is expected
    assert len(served.leader.of(CallApi)) == 1
    assert served.member.state.value.phase == "serving"


async def test_extensions_are_asked_only_of_a_leader_that_knows_them(rig: Rig) -> None:
    """Protocol section 11."""
    rig.leader.identity = ours("1", [DURABLE_ADMISSION])
    await rig.leader.start()
    await rig.wait("serving")
    with pytest.raises(RequestRefused, match="does not know"):
        await rig.member.ask(lambda fields: MembersList(request_id=fields["request_id"], auth=fields["auth"]))
    assert rig.leader.of(MembersList) == []


async def test_a_refused_registration_is_a_state_with_its_reason(rig: Rig) -> None:
    """It asks again after a while: what was in the way may be gone."""
    rig.leader.replies["follower.register"] = lambda e: refuse(e, "the chat is not a forum; switch on Topics")
    await rig.leader.start()
    await rig.wait("refused", "switch on Topics")
    await rig.leader.wait_got(Register, 2)
    del rig.leader.replies["follower.register"]
    await rig.wait("serving")


@pytest.mark.parametrize(
    ("answer", "phase", "reason"),
    [
        (lambda e: refuse(e, "x", AckError(code="incompatible-protocol")), "refused", "x"),
        (ok, "refused", "missing-identity"),
        (lambda e: ok(e, protocol=attrs.evolve(ours("1"), protocol_version=2)), "refused", "version-mismatch"),
        (lambda e: ok(e, protocol=ours("1", [])), "refused", "missing-capability"),
        (lambda e: refuse(e, "nobody knows", AckError(code="commit-unknown")), "no leader", "nobody knows"),
        (
            lambda e: refuse(e, "y", result={"apiError": {"method": "m", "code": 400, "description": "Bad"}}),
            "refused",
            "Bad",
        ),
    ],
)
async def test_a_leader_that_cannot_be_worked_with(
    rig: Rig, answer: Callable[[Envelope], Ack], phase: str, reason: str
) -> None:
    """The follower stays, waits, and says why."""
    rig.leader.replies["follower.register"] = answer
    await rig.leader.start()
    await rig.wait(phase, reason)
    del rig.leader.replies["follower.register"]
    await rig.wait("serving")


@pytest.mark.parametrize(
    ("result", "target"),
    [
        (None, None),
        ({"chatId": 5}, Target(chat_id=5)),
        ({"chatId": 5, "threadId": "x", "slot": 3}, Target(chat_id=5)),
        ({"threadId": 4}, None),
    ],
)
async def test_a_place_is_what_the_answer_says(rig: Rig, result: Any, target: Target | None) -> None:
    """Perhaps none."""
    rig.leader.target = result
    await rig.leader.start()
    await rig.wait("serving")
    assert rig.member.target.value == target


async def test_the_mark_of_a_stopped_bus_is_a_state(rig: Rig) -> None:
    """Until it is gone."""
    rig.profile.stopped.touch()
    await rig.wait("stopped", "telegram-bus start")
    await rig.leader.start()
    await rig.wait("serving")


@pytest.mark.parametrize("rubbish", ["a missing", "an open"])
async def test_a_secret_that_cannot_be_read_is_waited_for(rig: Rig, rubbish: str) -> None:
    """A person mends it."""
    await rig.leader.start()
    await rig.wait("serving")
    secret = rig.profile.follower_secret
    kept = secret.read_bytes()
    if rubbish == "a missing":
        secret.rename(secret.with_name("away"))
    else:
        secret.chmod(0o644)
    await rig.leader.stop()
    rig.leader.got.clear()
    # the leader has its own idea of the secret meanwhile
    await rig.wait("no leader")
    if rubbish == "a missing":
        secret.write_bytes(kept)
    secret.chmod(0o600)
    await rig.leader.start()
    await rig.wait("serving")


async def test_a_working_directory_that_is_gone_does_not_keep_it_from_registering(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has none to tell, then."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError):
        os.getcwd()  # noqa: PTH109
    await rig.leader.start()
    await rig.wait("serving")
    assert rig.leader.of(Register)[0].registration.cwd is None


async def test_who_leaves_says_goodbye(served: Rig) -> None:
    """With the registration in force; its endpoint is gone, and the state says so."""
    served.scope.cancel("the program ends")
    await served.left.wait()
    (farewell,) = served.leader.of(Disconnect)
    assert farewell.registration_generation == served.leader.of(Register)[0].registration.registration_generation
    assert served.member.state.value.phase == "left"
    assert not served.endpoint.exists()


async def test_a_leader_that_hears_no_farewell_holds_nobody_up(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last request has little time."""
    monkeypatch.setattr(member_module, "FAREWELL", 0.05)
    served.leader.replies["follower.disconnect"] = lambda _: None
    served.scope.cancel("the program ends")
    await served.left.wait()


async def test_nothing_can_be_asked_after_it_left(served: Rig) -> None:
    """It says so in place of waiting for ever."""
    served.scope.cancel("the program ends")
    await served.left.wait()
    with pytest.raises(NoLeader, match="left the bus"):
        await served.ask()


async def test_an_update_is_acknowledged_with_its_receipt_once_it_is_stored(served: Rig) -> None:
    """A repetition gets the same receipt, and the program sees it once."""
    arrived = served.member.unread.arrived.value
    first = await served.deliver(1)
    assert first.ok
    assert first.result == {"deliveryId": delivery_id("leader.forwardMessage", "nora", 1), "sourceUpdateId": 1}
    assert await served.deliver(1) == first
    assert [one.parts[0].source_update_id for one in served.member.unread.waiting] == [1]
    assert served.member.unread.arrived.value == arrived + 1
    assert [one.delivery_id for one in await served.member.inbox.pending()] == [first.result["deliveryId"]]


@pytest.mark.parametrize(
    "changes",
    [
        {"auth": "wrong"},
        {"recipient_instance_id": "another"},
        {"recipient_registration_generation": "old"},
        {"message": {"text": "x"}},
        {
            "delivery": Delivery(
                delivery_id="telegram-follower-v1-" + "0" * 64, source_update_id=1, recipient_binding_key="nora"
            )
        },
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_what_is_not_for_it_is_refused_and_not_stored(served: Rig, changes: dict[str, Any]) -> None:
    """Protocol section 6: each of its checks."""
    ack = await served.deliver(1, **changes)
    assert not ack.ok
    assert ack.message
    assert not served.member.unread.waiting
    assert await served.member.inbox.pending() == []


async def test_an_update_that_cannot_be_stored_is_not_acknowledged(served: Rig) -> None:
    """The leader keeps it."""
    served.commits.fault = StateError("the disk is full")
    ack = await served.deliver(1)
    assert not ack.ok
    assert "disk is full" in (ack.message or "")
    served.commits.fault = None
    assert (await served.deliver(1)).ok
    assert len(served.member.unread.waiting) == 1


async def test_a_program_that_reads_nothing_is_given_no_more(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beyond stays with the leader; it goes on when the program reads."""
    monkeypatch.setattr(unread_module, "LIMIT", 2)
    assert (await served.deliver(1)).ok
    assert (await served.deliver(2)).ok
    refused = await served.deliver(3)
    assert not refused.ok
    assert refused.error is not None
    assert refused.error.code == "ledger-overloaded"  # so the leader does not count it
    assert "deliver later" in (refused.message or "")
    served.member.unread.waiting.popleft()
    assert (await served.deliver(3)).ok
    assert [one.parts[0].source_update_id for one in served.member.unread.waiting] == [2, 3]


async def test_a_thread_that_the_leader_replaced_is_its_target(served: Rig) -> None:
    """And what it registers with next time."""
    last = served.leader.of(Register)[-1].registration
    moved = ReplaceFollowerTarget(
        request_id="m",
        auth=served.leader.secret,
        recipient_instance_id=last.instance_id,
        recipient_registration_generation=last.registration_generation,
        target=Target(chat_id=CHAT, thread_id=99),
        reason="thread-restore",
        sent_at_ms=1,
    )
    assert (await request_once(served.endpoint, moved)).ok
    assert served.member.target.value == Target(chat_id=CHAT, thread_id=99)


async def test_updates_that_an_earlier_process_did_not_finish_wait_first(bus_profile: Profile, seat: HeldSeat) -> None:
    """Before anybody delivers."""
    inbox, _ = memory_inbox()
    for number in (1, 2, 3):
        await inbox.append(f"d{number}", "message", number, b"{}")
    await inbox.done("d2")
    member = member_for(bus_profile, seat, inbox)
    async with trio.open_nursery() as nursery:
        await nursery.start(member.run)
        assert [one.parts[0].source_update_id for one in member.unread.waiting] == [1, 3]
        nursery.cancel_scope.cancel("seen")


async def test_nothing_is_admitted_before_the_first_registration(rig: Rig) -> None:
    """Nobody has a generation to name then."""
    ack = await request_once(
        rig.endpoint,
        ReplaceFollowerTarget(
            request_id="m",
            recipient_instance_id="x",
            target=Target(chat_id=1, thread_id=2),
            reason="thread-restore",
            sent_at_ms=1,
        ),
    )
    assert not ack.ok


async def test_an_endpoint_that_was_removed_is_published_again(served: Rig) -> None:
    """A cleaner of old files may not cut a follower off."""
    served.endpoint.unlink()
    while not served.endpoint.exists():  # noqa: ASYNC110 - a file has no event
        await trio.sleep(0.01)
    assert (await served.deliver(1)).ok


async def test_an_endpoint_that_cannot_be_put_back_ends_nothing_and_is_tried_again(served: Rig) -> None:
    """A full disk, say; who is connected stays so."""
    directory = served.endpoint.parent
    directory.rename(directory.with_name("elsewhere"))
    directory.write_text("in the way")
    for _ in range(2):
        before = len(served.leader.of(Heartbeat))
        await served.leader.wait_got(Heartbeat, before + 10)
    assert served.member.state.value.phase == "serving"
    directory.unlink()
    while not served.endpoint.exists():  # noqa: ASYNC110 - a file has no event
        await trio.sleep(0.01)
    assert (await served.deliver(1)).ok


async def test_files_that_cannot_be_used_end_the_member(bus_profile: Profile, seat: HeldSeat) -> None:
    """That is no state of the bus but a fault of this machine."""
    inbox, commits = memory_inbox()
    commits.fault = StateError("the inbox cannot be read")
    with pytest.raises(StateError), single_fault():
        await member_for(bus_profile, seat, inbox).run()


async def test_an_edit_changes_a_message_that_the_program_has_not_looked_at(served: Rig) -> None:
    assert (await served.deliver(1)).ok
    assert (await served.deliver(2)).ok
    for _ in range(2):  # the second time it is a repetition
        assert (await served.deliver_edit(3, of=2, text="better")).ok
    assert [loads(one.parts[0].body)["text"] for one in served.member.unread.waiting] == ["text 1", "better"]
    assert [loads(one.body)["text"] for one in await served.member.inbox.pending()] == ["text 1", "better"]


async def test_an_edit_of_what_the_program_has_taken_is_another_update(served: Rig) -> None:
    assert (await served.deliver(1)).ok
    served.member.unread.waiting.popleft()
    for _ in range(2):
        assert (await served.deliver_edit(2, of=1, text="better")).ok
    assert [(one.kind, one.parts[0].source_update_id) for one in served.member.unread.waiting] == [
        ("edited_message", 2)
    ]


async def test_what_the_program_takes_while_an_edit_of_it_is_stored_is_followed_by_the_edit(served: Rig) -> None:
    assert (await served.deliver(1)).ok
    served.commits.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.deliver_edit, 2, 1, "better")
        while not served.commits.held:  # noqa: ASYNC110 - it comes over a socket
            await trio.sleep(0.001)
        served.member.unread.waiting.popleft()
        await served.commits.release()
    assert [(one.kind, one.parts[0].source_update_id) for one in served.member.unread.waiting] == [
        ("edited_message", 2)
    ]


async def test_a_disk_that_fails_is_no_refusal(served: Rig) -> None:
    served.commits.fault = StateError("full")
    answer = await served.deliver(1)
    assert not answer.ok
    assert answer.error is not None
    assert answer.error.code == "ledger-overloaded"
    served.commits.fault = None
    assert (await served.deliver(1)).ok


@pytest.mark.parametrize(("registers", "longest"), [(True, 0.0), (False, member_module.LONGEST_PAUSE)])
async def test_who_was_served_looks_for_the_next_leader_at_once_however_many_die(
    bus_profile: Profile,
    seat: HeldSeat,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: trio.testing.MockClock,
    registers: bool,
    longest: float,
) -> None:
    """Where none serves it the pauses grow instead, to a second and its spread."""
    began: list[float] = []
    ended: list[float] = []

    async def join_leader(member: Member, _public: str) -> None:
        began.append(trio.current_time())
        await trio.sleep(0.5)
        if registers:
            member._terms += 1
        ended.append(trio.current_time())
        raise NoLeader("the connection to the leader ended")

    monkeypatch.setattr(Member, "_join_leader", join_leader)
    inbox, _ = memory_inbox()
    member = member_for(bus_profile, seat, inbox)
    with trio.move_on_after(30):
        await member._stay_registered("endpoint")
    pauses = [start - end for start, end in zip(began[1:], ended, strict=False)]
    assert len(pauses) > 10
    assert max(pauses) == pytest.approx(longest, abs=0.5)
    assert (max(pauses) == 0.0) is registers
