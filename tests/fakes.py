"""Stand-ins that tests of several parts share: stores without threads or files, followers, and a leader on a socket."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio
from attrs import define, field
from trio.testing import wait_all_tasks_blocked

from telegram_bus.botapi.uploads import Upload
from telegram_bus.core.envelopes import (
    Ack,
    AckError,
    CallApi,
    Disconnect,
    Envelope,
    Heartbeat,
    ProtocolIdentity,
    Register,
    Registration,
    Target,
)
from telegram_bus.core.errors import BusError
from telegram_bus.core.identity import ours
from telegram_bus.core.registry import Member, Provisioned, Registry
from telegram_bus.home import Home, Profile, mint_secret
from telegram_bus.roles.files import Files
from telegram_bus.roles.holder import this_process
from telegram_bus.roles.record import LeaderRecord, stage_leader
from telegram_bus.store import Inbox, Store, journal
from telegram_bus.store.commits import Commits, Operation
from telegram_bus.store.schema import INBOX, JOURNAL
from telegram_bus.wire.endpoint import open_endpoint
from telegram_bus.wire.server import Answer, Peer, serve_bus

T = TypeVar("T")

CHAT = -1001234
BOT = 42
OWNER = 7
SECRET = "s" * 64
NOT_OLD = 2**31 - 1
"""A date of messages that no test takes for a backlog, however long it runs."""


@define(eq=False)
class _Held:
    """An operation that was asked for while the test holds the commits back."""

    operation: Operation[Any]
    outcome: Any = None
    done: trio.Event = field(factory=trio.Event)


class InlineCommits(Commits):
    """Commits in memory, in the task that asks, so that a virtual clock works; `fault` makes the disk fail."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection, lambda _: None, "memory")
        self.db = connection
        self.fault: BusError | None = None
        self.held: list[_Held] | None = None
        self.count = 0

    async def run(self, operation: Operation[T]) -> T:
        """One transaction, after a checkpoint as the real one has it."""
        await trio.lowlevel.checkpoint()
        if self.held is not None:
            held = _Held(operation)
            self.held.append(held)
            await held.done.wait()
            if isinstance(held.outcome, Exception):
                raise held.outcome
            return held.outcome  # type: ignore[no-any-return]
        if self.fault is not None:
            raise self.fault
        return self._commit(operation)

    def soon(self, operation: Operation[object]) -> None:
        """Commit at once what nobody waits for; where the disk fails, nobody hears of it."""
        if self.fault is None:
            self._commit(operation)

    def hold(self) -> None:
        """Keep what is asked for from now on, to be committed together by `release`."""
        self.held = []

    async def release(self, *, newest_first: bool = False) -> None:
        """Commit what was kept in the order in which it was asked for; wake the askers in that order or backwards."""
        held, self.held = self.held or [], None
        for one in held:
            one.outcome = self._commit(one.operation)
        for one in reversed(held) if newest_first else held:
            one.done.set()
            await wait_all_tasks_blocked()

    def _commit(self, operation: Operation[T]) -> T:
        self.count += 1
        self.db.execute("BEGIN")
        try:
            result = operation(self.db)
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")
        return result


def memory_store(connection: sqlite3.Connection | None = None) -> tuple[Store, InlineCommits]:
    """The leader's store with its real statements; given the connection of an earlier one, its successor's."""
    if connection is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.executescript("".join(JOURNAL.steps))
    store_id, epoch = journal.start_term(connection, "test", 0)
    commits = InlineCommits(connection)
    return Store(epoch, store_id, None, commits), commits


def memory_inbox() -> tuple[Inbox, InlineCommits]:
    """A follower's inbox with its real statements."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("".join(INBOX.steps))
    commits = InlineCommits(connection)
    return Inbox(None, commits, lambda: 1.0), commits


def message(
    update_id: int, *, thread: int | None = 11, text: str = "hello", sender: Any = None, **fields: Any
) -> dict[str, Any]:
    """A raw update: the owner writes into a thread of the forum."""
    body: dict[str, Any] = {
        "message_id": 1000 + update_id,
        "date": NOT_OLD,
        "chat": {"id": CHAT, "type": "supergroup", "is_forum": True},
        "from": sender or {"id": OWNER, "is_bot": False, "first_name": "O"},
        "text": text,
    }
    if thread is not None:
        body |= {"message_thread_id": thread, "is_topic_message": True}
    return {"update_id": update_id, "message": body | fields}


def registration(
    key: str | None, *, instance: str | None = None, thread: int | None = None, **fields: Any
) -> Registration:
    """A registration of one of our own followers."""
    return Registration(
        instance_id=instance or f"{key}:1",
        connected_at_ms=0,
        profile_key=key,
        target=None if thread is None else Target(chat_id=CHAT, thread_id=thread),
        registration_generation=fields.pop("generation", "g1"),
        protocol=ours("1"),
        **fields,
    )


def admit(registry: Registry, key: str, *, thread: int | None = None, **fields: Any) -> Member:
    """Put a follower into a registry."""
    told = registration(key, thread=thread, **fields)
    given = None if thread is None else Provisioned(target=Target(chat_id=CHAT, thread_id=thread), thread_name=key)
    return registry.admit(told, given, now_ms=1_000).member


@define(eq=False)
class FakeTelegram:
    """Answers calls by a table of results or faults; notes them. What is gated waits for `gate`."""

    results: dict[str, Any] = field(factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(factory=list)
    gate: trio.Event | None = None
    uploads: list[tuple[str, str, bytes]] = field(factory=list)
    _next: int = 100

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        _chat: int | None = None,
        *,
        files: tuple[Upload, ...] = (),
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """What `Sender.call` and `BotApi.call` do."""
        params = dict(params or {})
        if before is not None:
            await before()
        self.calls.append((method, params))
        self.uploads += [(one.field, one.name, os.pread(one.descriptor, one.size, 0)) for one in files]
        await trio.lowlevel.checkpoint()
        if self.gate is not None:
            await self.gate.wait()
        result = self.results.get(method)
        if isinstance(result, Exception):
            raise result
        if result is not None:
            return result
        self._next += 1
        if method == "createForumTopic":
            return {"message_thread_id": self._next, "name": params["name"]}
        if method.startswith("send"):
            return {"message_id": self._next, "chat": {"id": params.get("chat_id")}, **_thread(params)}
        return True

    async def download(
        self, path: str, write: Callable[[int, bytes], Awaitable[None]], _most: int, start: int = 0
    ) -> int:
        """What `BotApi.download` does: a piece at a time."""
        self.calls.append(("download", {"path": path, "start": start}))
        content = self.results[path]
        if isinstance(content, Exception):
            raise content
        for at in range(start, len(content), 5):
            await write(at, content[at : at + 5])
        return len(content)

    def made(self, method: str) -> list[dict[str, Any]]:
        """The parameters of each call of the method."""
        return [params for called, params in self.calls if called == method]


def _thread(params: Mapping[str, Any]) -> dict[str, Any]:
    thread = params.get("message_thread_id")
    return {} if thread is None else {"message_thread_id": thread}


def fake_files(telegram: FakeTelegram, profile: Profile | None = None, store: Store | None = None) -> Files:
    """The files of a term, with Telegram's own limits; without a store nobody remembers whose they are."""
    place = Home(Path("/nowhere")).profile("default") if profile is None else profile
    owners = memory_store()[0] if store is None else store
    return Files(profile=place, call=telegram.call, api=telegram, owners=owners, now_ms=lambda: 1)


Reply = Callable[[Envelope], "Ack | Awaitable[Ack] | None"]


@define(eq=False)
class FakeLeader:
    """A leader on a real Unix socket that says what the test wants; what it was asked stands in `got`.

    `replies` has an answer for each kind of envelope, or what makes it (None: never an answer). `accept` says whether
    it knows registrations. `stop` ends it as a kill does; `start` begins a term that follows.
    """

    profile: Profile
    nursery: trio.Nursery
    identity: ProtocolIdentity = field(factory=lambda: ours("1"))
    replies: dict[str, Reply] = field(factory=dict)
    target: dict[str, Any] | None = field(factory=lambda: {"chatId": CHAT, "threadId": 11, "threadName": "nora"})
    got: list[Envelope] = field(factory=list)
    known: set[str | None] = field(factory=set)
    epoch: int = 0
    _scope: trio.CancelScope = field(factory=trio.CancelScope)
    _ended: trio.Event = field(factory=trio.Event)
    _heard: trio.Event = field(factory=trio.Event)

    @property
    def secret(self) -> str:
        """What followers find in the profile."""
        return mint_secret(self.profile.follower_secret)

    async def start(self) -> None:
        """Serve, and publish leader.json."""
        self.profile.ensure()
        _ = self.secret
        self._scope, self._ended, self.epoch, self.known = trio.CancelScope(), trio.Event(), self.epoch + 1, set()
        await self.nursery.start(self._serve)

    async def stop(self) -> None:
        """Be gone from one moment to the next; leader.json and a dangling endpoint stay."""
        self._scope.cancel("killed")
        await self._ended.wait()

    def of(self, kind: type[T]) -> list[T]:
        """What it was asked of one kind."""
        return [one for one in self.got if isinstance(one, kind)]

    async def wait_got(self, kind: type[T], count: int = 1) -> list[T]:
        """Wait until it was asked so often."""
        while len(found := self.of(kind)) < count:
            await self._heard.wait()
        return found

    async def _serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self._scope, open_endpoint(self.profile.leader_socket) as endpoint:
            async with trio.open_nursery() as nursery:
                serve = partial(serve_bus, endpoint.listener, self._respond, is_known=lambda _: True)
                await nursery.start(serve)
                stage_leader(self.profile, self._record(str(endpoint.public))).publish()
                endpoint.publish()
                task_status.started()
        self._ended.set()

    def _record(self, endpoint: str) -> LeaderRecord:
        return LeaderRecord(
            holder=this_process(),
            instance=f"leader:{self.epoch}",
            epoch=self.epoch,
            endpoint=endpoint,
            protocol=self.identity,
            state="serving",
            since=0.0,
        )

    def _respond(self, envelope: Envelope, _peer: Peer) -> Answer:
        if envelope.auth != self.secret:  # a probe: any answer will do
            return Ack(request_id=envelope.request_id, ok=False)
        self.got.append(envelope)
        self._heard.set()
        self._heard = trio.Event()
        return partial(self._answer, envelope)

    async def _answer(self, envelope: Envelope) -> Ack:
        reply = self.replies.get(envelope.KIND, self._usual)(envelope)
        if reply is None:
            await trio.sleep_forever()
        return reply if isinstance(reply, Ack) else await reply

    def _usual(self, envelope: Envelope) -> Ack:
        match envelope:
            case Register():
                self.known = {envelope.registration.registration_generation}
                return ok(envelope, self.target, protocol=self.identity)
            case Heartbeat() | Disconnect() if envelope.registration_generation not in self.known:
                return refuse(envelope, "this registration is not known")
            case Heartbeat():
                return ok(envelope, {"eligibleElectionSlots": ["A", "B"]})
            case CallApi():
                return ok(envelope, {"message_id": 500 + len(self.got), "chat": {"id": CHAT}, "message_thread_id": 11})
            case _:
                return ok(envelope)


def ok(envelope: Envelope, result: Any = None, *, protocol: ProtocolIdentity | None = None) -> Ack:
    """An accepting answer."""
    return Ack(request_id=envelope.request_id, ok=True, result=result, protocol=protocol)


def refuse(envelope: Envelope, why: str, error: AckError | None = None, result: Any = None) -> Ack:
    """A refusing answer."""
    return Ack(request_id=envelope.request_id, ok=False, message=why, error=error, result=result)
