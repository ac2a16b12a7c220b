"""The requests of a leader: once each, in turn, under its lease."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
import trio
from attrs import define, field
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.admission import Rules
from telegram_bus.core.answers import fault_of
from telegram_bus.core.envelopes import (
    ABSENT,
    Ack,
    AckError,
    AgentMessage,
    AgentSelector,
    CallApi,
    Disconnect,
    Envelope,
    Heartbeat,
    Register,
    Registration,
    ResolveAgentTarget,
    Target,
)
from telegram_bus.core.errors import ApiError, CommitUnknown, NotSent, RequestRefused
from telegram_bus.core.extensions import (
    MembersList,
    OperatorPurge,
    OperatorRequest,
    OperatorStop,
    OwnRequest,
    StatusGet,
)
from telegram_bus.core.identity import DURABLE_ADMISSION, EXTENSIONS, ours
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member, Provisioned
from telegram_bus.core.values import Number
from telegram_bus.roles.files import Enclosed
from telegram_bus.roles.ports import Found
from telegram_bus.roles.requests import MAX_WATCH_SECONDS, Requests
from telegram_bus.wire.descriptors import Descriptors
from telegram_bus.wire.server import Peer

PEER = Peer(pid=7, uid=0)
SECRET = "s"


@define
class Nothing:
    """What belongs to somebody who has nothing."""

    def message(self, chat_id: Number, message_id: Number, /) -> bool:
        return False

    seen = message

    def callback(self, query_id: str, /) -> bool:
        return False

    file = callback


@define(eq=False)
class Leader:
    """Ports whose work waits for `gate`, and that note what was done."""

    leads: bool = True
    gate: trio.Event = field(factory=trio.Event)
    done: list[str] = field(factory=list)
    fault: Exception | None = None
    now: int = 1_000
    requests: Requests = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.gate.set()
        self.requests = Requests(self, Rules(identity=ours("1"), secret=SECRET, operator_secret="o"))

    def now_ms(self) -> int:
        return self.now

    def leading(self) -> bool:
        return self.leads

    async def _work(self, what: str) -> None:
        self.done.append(f"{what} begins")
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.done.append(what)

    async def provision(self, registration: Registration) -> Provisioned | None:
        await self._work(f"provision {registration.instance_id}")
        return Provisioned(target=Target(chat_id=1, thread_id=2), thread_name="Nora")

    async def retire(self, member: Member) -> None:
        await self._work(f"retire {member.instance_id}")

    def recall(self, member: Member, method: str, args: Sequence[Any]) -> None:
        """Everything is in memory here."""

    def owned_by(self, member: Member) -> Nothing:
        return Nothing()

    def upload_root(self, member: Member) -> str | None:
        return None

    async def fetch_file(
        self, member: Member, file_id: str, beside: Descriptors | None, *, resume: bool = False
    ) -> Any:
        raise AssertionError("no file was given to anybody")

    async def call_api(
        self,
        member: Member,
        call: Allowed,
        request_id: str,
        call_id: str | None = None,
        enclosed: Enclosed | None = None,
    ) -> Any:
        await self._work(f"call {call.api_method}")
        return {"message_id": len(self.done)}

    async def serve(self, member: Member, request: OwnRequest) -> Any:
        await self._work(f"serve {request.KIND}")
        return {"held": True}

    async def resolve(self, member: Member, selector: AgentSelector, *, main_chat: bool = False) -> Found:
        if selector.thread_name != "Otto":
            raise RequestRefused("no such agent")
        return Found(Target(chat_id=1), "otto", "Otto") if main_chat else Found(Target(chat_id=1, thread_id=3))

    async def route(self, member: Member, message: AgentMessage) -> None:
        pass

    async def forward(self, member: Member, envelope: Envelope) -> Ack:
        raise NotSent("nobody listens there")

    def status(self) -> dict[str, Any]:
        return {"state": "polling"}

    async def operate(self, request: OperatorRequest) -> Any:
        self.done.append(request.KIND)
        return {"rows": 3}

    def request_stop(self) -> None:
        self.done.append("stop")

    async def ask(self, envelope: Envelope, peer: Peer = PEER) -> Ack:
        """The answer to a request with the followers' secret, unless it has another."""
        if envelope.auth is None:
            envelope = attrs.evolve(envelope, auth=SECRET)
        answer = self.requests.respond(envelope, peer)
        return answer if isinstance(answer, Ack) else await answer()


def register(instance: str = "a", request_id: str = "r", *capabilities: str, key: str | None = None) -> Register:
    """A registration; the generation is the request's id."""
    told = Registration(
        instance_id=instance,
        connected_at_ms=0,
        profile_key=key,
        registration_generation=request_id,
        protocol=ours("1", [DURABLE_ADMISSION, *capabilities]),
    )
    return Register(request_id=request_id, registration=told)


def call(request_id: str = "c", text: str = "x") -> CallApi:
    """A message into its own thread."""
    body = {"chat_id": 1, "message_thread_id": 2, "text": text}
    return CallApi(
        request_id=request_id,
        instance_id="a",
        registration_generation="r",
        sent_at_ms=0,
        method="call",
        args=("sendMessage", body),
    )


def beat(request_id: str = "h") -> Heartbeat:
    """A heartbeat."""
    return Heartbeat(request_id=request_id, instance_id="a", registration_generation="r", sent_at_ms=0)


@pytest.fixture
async def leader() -> Leader:
    """A leader with the member "a"."""
    leader = Leader()
    assert (await leader.ask(register())).ok
    leader.done.clear()
    return leader


async def test_a_registration_says_who_leads_and_where_to_write() -> None:
    """The thread's name that provisioning gave is in the answer and in the registry."""
    leader = Leader()
    ack = await leader.ask(register())
    assert ack == Ack(
        request_id="r",
        ok=True,
        protocol=ours("1"),
        result={"chatId": 1, "threadId": 2, "threadName": "Nora"},
    )
    assert leader.requests.knows(PEER)
    assert not leader.requests.knows(Peer(pid=8, uid=0))


async def test_what_needs_no_waiting_is_answered_at_once(leader: Leader) -> None:
    """Heartbeats, refusals, reads and denied calls cost no task."""
    asked: list[Envelope] = [
        beat(),
        StatusGet(request_id="s"),
        MembersList(request_id="m"),
        attrs.evolve(call(), method="eval"),
        attrs.evolve(beat(), instance_id="nobody"),
    ]
    for envelope in asked:
        answer = leader.requests.respond(attrs.evolve(envelope, auth=SECRET), PEER)
        assert isinstance(answer, Ack)
    assert isinstance(leader.requests.respond(beat(), PEER), Ack)  # without the secret


async def test_the_same_request_again_is_not_done_again(leader: Leader) -> None:
    """It gets the same answer; another one under its id is refused."""
    first = await leader.ask(call())
    assert await leader.ask(call()) == first
    assert leader.done == ["call sendMessage begins", "call sendMessage"]
    collision = await leader.ask(call(text="y"))
    assert collision.error == AckError(code="request-id-collision")
    assert leader.done == ["call sendMessage begins", "call sendMessage"]


async def test_refusals_are_remembered_like_any_answer(leader: Leader) -> None:
    """A request that was refused stays refused under its id."""
    refused = await leader.ask(attrs.evolve(call("d"), instance_id="b", registration_generation="n"))
    assert not refused.ok
    await leader.ask(register("b", "n"))
    again = await leader.ask(attrs.evolve(call("d"), instance_id="b", registration_generation="n"))
    assert again == refused


async def test_a_wrong_secret_leaves_no_trace(leader: Leader) -> None:
    """The id that a stranger used is still free."""
    assert not (await leader.ask(attrs.evolve(call(), auth="wrong"))).ok
    assert (await leader.ask(call())).ok


async def test_a_repeat_waits_for_the_first(leader: Leader) -> None:
    """Both get the one answer."""
    leader.gate = trio.Event()
    acks: list[Ack] = []

    async def ask() -> None:
        acks.append(await leader.ask(call()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert acks == []
        leader.gate.set()
    assert acks == [acks[0]] * 3
    assert leader.done == ["call sendMessage begins", "call sendMessage"]


async def test_an_attempt_that_was_cut_off_is_made_again_by_who_waits(leader: Leader) -> None:
    """A repeat does not inherit the cancellation of the first."""
    leader.gate = trio.Event()
    acks: list[Ack] = []

    async def ask(scope: trio.CancelScope) -> None:
        with scope:
            acks.append(await leader.ask(call()))

    first = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, first)
        await wait_all_tasks_blocked()
        nursery.start_soon(ask, trio.CancelScope())
        await wait_all_tasks_blocked()
        first.cancel("the connection was lost")
        await wait_all_tasks_blocked()
        leader.gate.set()
    assert len(acks) == 1
    assert leader.done == ["call sendMessage begins", "call sendMessage begins", "call sendMessage"]


async def test_work_that_is_never_begun_takes_no_place(leader: Leader) -> None:
    """A server may drop what it was given, a thousand times."""
    for number in range(1_000):
        assert not isinstance(leader.requests.respond(attrs.evolve(call(str(number)), auth=SECRET), PEER), Ack)
    assert (await leader.ask(call())).ok


async def test_more_than_64_in_flight_are_refused(leader: Leader) -> None:
    """Until some have their answers; heartbeats do not count."""
    leader.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        for number in range(64):
            nursery.start_soon(leader.ask, call(str(number)))
        await wait_all_tasks_blocked()
        assert (await leader.ask(call())).error == AckError(code="ledger-overloaded")
        assert (await leader.ask(beat())).ok
        leader.gate.set()
    assert (await leader.ask(call())).ok


async def test_registrations_of_one_profile_take_turns() -> None:
    """A slow one cannot overtake its replacement; another profile does not wait."""
    leader = Leader(gate=trio.Event())
    leader.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(leader.ask, register("a", "1", key="p"))
        await wait_all_tasks_blocked()
        nursery.start_soon(leader.ask, register("b", "2", key="p"))
        nursery.start_soon(leader.ask, register("c", "3", key="q"))
        await wait_all_tasks_blocked()
        assert leader.done == ["provision a begins", "provision c begins"]
        leader.gate.set()
    assert leader.requests.registry.by_key("p") is leader.requests.registry.get("b")
    assert leader.requests.registry.get("a") is None


async def test_a_disconnect_that_waited_for_a_new_registration_removes_nothing(leader: Leader) -> None:
    """Its generation is not the one in force any more, so nothing is cleaned up either."""
    leader.gate = trio.Event()
    leaving = Disconnect(request_id="d", instance_id="a", registration_generation="r", sent_at_ms=0)
    acks: list[Ack] = []

    async def leave() -> None:
        acks.append(await leader.ask(leaving))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leader.ask, register("a", "r2"))
        await wait_all_tasks_blocked()
        nursery.start_soon(leave)
        await wait_all_tasks_blocked()
        leader.gate.set()
    assert [ack.ok for ack in acks] == [False]
    assert leader.requests.registry.get("a") is not None
    assert "retire a begins" not in leader.done


async def test_who_leaves_is_cleaned_up_after_and_gone(leader: Leader) -> None:
    """And a repeat of its farewell is answered alike."""
    leaving = Disconnect(request_id="d", instance_id="a", registration_generation="r", sent_at_ms=0)
    assert await leader.ask(leaving) == Ack(request_id="d", ok=True)
    assert await leader.ask(leaving) == Ack(request_id="d", ok=True)
    assert leader.done == ["retire a begins", "retire a"]
    assert not leader.requests.knows(PEER)


async def test_a_leader_that_loses_its_lease_while_it_provisions_admits_nobody() -> None:
    """Leadership is read before and after."""
    leader = Leader()
    leader.gate = trio.Event()
    acks: list[Ack] = []

    async def ask() -> None:
        acks.append(await leader.ask(register()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        leader.leads = False
        leader.gate.set()
    assert not acks[0].ok
    assert len(leader.requests.registry) == 0
    leader.done.clear()
    assert not (await leader.ask(register("b", "r2"))).ok
    assert leader.done == []


@pytest.mark.parametrize(
    ("fault", "extended", "expected"),
    [
        (CommitUnknown("look into the chat"), False, CommitUnknown),
        (RequestRefused("wait 30 s"), False, RequestRefused),
        (ApiError("sendMessage", 429, "Too Many Requests", retry_after=3), False, RequestRefused),
        (ApiError("sendMessage", 429, "Too Many Requests", retry_after=3), True, ApiError),
    ],
)
async def test_a_failed_call_says_why(fault: Exception, extended: bool, expected: type[Exception]) -> None:
    """The other side makes the same fault of it: Telegram's refusals as data for those who understand them."""
    leader = Leader()
    await leader.ask(register("a", "r", *(["telegram-bus-ext-v1"] if extended else [])))
    leader.fault = fault
    ack = await leader.ask(call())
    assert not ack.ok
    assert ack.message == str(fault)
    told = fault_of(ack)
    assert type(told) is expected
    if isinstance(told, ApiError):
        assert (told.method, told.code, told.retry_after) == ("sendMessage", 429, 3)
    if expected is CommitUnknown:
        assert ack.error == AckError(code="commit-unknown", method="sendMessage")
    if not extended:
        assert ack.result is ABSENT


async def test_a_call_refreshes_its_caller_even_when_it_is_refused(leader: Leader) -> None:
    """So does a failed resolve; a refused fence does not."""
    member = leader.requests.registry.get("a")
    assert member is not None
    leader.now = 2_000
    await leader.ask(attrs.evolve(call(), method="eval"))
    assert member.last_heartbeat_ms == 2_000
    leader.now = 3_000
    selector = AgentSelector(thread_name="Nobody")
    asked = ResolveAgentTarget(
        request_id="t", instance_id="a", registration_generation="r", sent_at_ms=0, selector=selector
    )
    assert not (await leader.ask(asked)).ok
    assert member.last_heartbeat_ms == 3_000
    leader.now = 4_000
    await leader.ask(attrs.evolve(beat(), registration_generation="old"))
    assert member.last_heartbeat_ms == 3_000


@pytest.mark.parametrize(
    ("announced", "main_chat", "result"),
    [
        ([EXTENSIONS], True, {"chatId": 1, "key": "otto", "name": "Otto"}),
        ([EXTENSIONS], None, {"chatId": 1, "threadId": 3}),
        ([], True, {"chatId": 1, "threadId": 3}),
    ],
)
async def test_the_main_chat_is_an_answer_only_for_who_asks_for_it(
    announced: list[str], main_chat: bool | None, result: dict[str, Any]
) -> None:
    """A peer of version 1 gets a chat and a thread, and nothing else."""
    leader = Leader()
    await leader.ask(register("a", "r", *announced))
    asked = ResolveAgentTarget(
        request_id="t",
        instance_id="a",
        registration_generation="r",
        sent_at_ms=0,
        selector=AgentSelector(thread_name="Otto"),
        main_chat=main_chat,
    )
    assert (await leader.ask(asked)).result == result


async def watched(leader: Leader, asked: MembersList, change: Callable[[], object]) -> Ack:
    """The answer to a watcher that waits while `change` happens."""
    acks: list[Ack] = []

    async def watch() -> None:
        acks.append(await leader.ask(asked))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await wait_all_tasks_blocked()
        assert acks == []
        change()
    return acks[0]


async def test_a_watcher_learns_of_a_change(leader: Leader) -> None:
    """Also of one that happened between its question and its wait."""
    revision = leader.requests.registry.revision
    asked = MembersList(request_id="m", auth=SECRET, after_revision=revision, wait_ms=60_000)
    leader.now = 10_000
    ack = await watched(leader, asked, leader.requests.prune)
    assert ack.result == {"revision": revision + 1, "members": []}
    work = leader.requests.respond(attrs.evolve(asked, after_revision=revision + 1), PEER)
    await leader.ask(register("b", "n"))
    assert not isinstance(work, Ack)
    assert [one["key"] for one in (await work()).result["members"]] == ["b"]


async def test_a_watcher_is_answered_after_25_seconds(autojump_clock: MockClock) -> None:
    """However long it would wait; a question without a revision is answered at once."""
    leader = Leader()
    await leader.ask(register())
    began = trio.current_time()
    ack = await leader.ask(MembersList(request_id="m", after_revision=1, wait_ms=10**9))
    assert trio.current_time() - began == pytest.approx(MAX_WATCH_SECONDS)
    assert ack.result["members"][0] == {
        "key": "a",
        "instanceId": "a",
        "name": "Nora",
        "target": {"chatId": 1, "threadId": 2},
        "connectedAtMs": 1_000,
        "lastHeartbeatMs": 1_000,
    }


async def test_only_the_operator_stops_the_leader(leader: Leader) -> None:
    """The followers' secret does not."""
    assert not (await leader.ask(OperatorStop(request_id="1"))).ok
    assert leader.done == []
    assert (await leader.ask(OperatorStop(request_id="1", auth="o"))).ok
    assert leader.done == ["stop"]


async def test_only_the_operator_looks_after_the_bus(leader: Leader) -> None:
    assert not (await leader.ask(OperatorPurge(request_id="1"))).ok
    assert leader.done == []
    answer = await leader.ask(OperatorPurge(request_id="1", auth="o"))
    assert answer.result == {"rows": 3}
    assert leader.done == ["x.operator.purge"]
