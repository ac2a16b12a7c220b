"""The threads of a chat with all that looks after them, over a store in memory and a Telegram that has topics."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from telegram_bus.core.bindings import Binding
from telegram_bus.core.errors import ApiError, CommitUnknown
from telegram_bus.core.registry import Registry
from telegram_bus.home import Home, Profile
from telegram_bus.roles.clean_up import CleanUpPolicy, CleanUps
from telegram_bus.roles.thread_care import ThreadCare
from telegram_bus.roles.threads import Threads
from telegram_bus.roles.visibility import Visibility
from tests.fakes import CHAT, FakeTelegram, InlineCommits, admit, memory_store, registration


@define(eq=False)
class Topics(FakeTelegram):
    """Telegram with topics: `topics` are those that there are, by id; `lost` says that none can be found just now."""

    topics: dict[int, str] = field(factory=dict)
    closed: set[int] = field(factory=set)
    lost: bool = False
    silent: bool = False
    """Whether answers to createForumTopic get lost, although the topic is made."""

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, _chat: int | None = None, **more: Any
    ) -> Any:
        params = dict(params or {})
        made = await super().call(method, params, _chat, **more)
        thread = params.get("message_thread_id")
        match method:
            case "createForumTopic":
                self.topics[made["message_thread_id"]] = params["name"]
                if self.silent:
                    raise CommitUnknown("no answer")
            case "editForumTopic" | "closeForumTopic" | "reopenForumTopic" | "deleteForumTopic":
                return self._change(method, thread, params)
        return made

    def _change(self, method: str, thread: Any, params: Mapping[str, Any]) -> bool:
        if thread not in self.topics or self.lost:
            raise ApiError(method, 400, "Bad Request: TOPIC_ID_INVALID")
        if method == "deleteForumTopic":
            del self.topics[thread]
        elif method == "editForumTopic":
            if self.topics[thread] == params["name"]:
                raise ApiError(method, 400, "Bad Request: TOPIC_NOT_MODIFIED")
            self.topics[thread] = params["name"]
        else:
            closed = method == "closeForumTopic"
            if closed == (thread in self.closed):
                raise ApiError(method, 400, "Bad Request: TOPIC_NOT_MODIFIED")
            (self.closed.add if closed else self.closed.discard)(thread)
        return True

    def asked(self) -> list[str]:
        """The methods that were called."""
        return [method for method, _ in self.calls]


@define(eq=False)
class Rig:
    """Threads, and who looks after them. `said` is what people were told, `moved` who was told of another thread."""

    root: Path
    telegram: Topics = field(factory=Topics)
    chat_id: int = CHAT
    policy: CleanUpPolicy = "keep"
    dead: bool = False
    earlier: InlineCommits | None = None
    waits: dict[str, int] = field(factory=dict)
    said: list[str] = field(factory=list)
    moved: list[tuple[str, int | None]] = field(factory=list)
    reseated: list[str] = field(factory=list)
    registry: Registry = field(factory=Registry)
    leads: bool = True
    commits: InlineCommits = field(init=False)
    threads: Threads = field(init=False)
    visibility: Visibility = field(init=False)
    clean_ups: CleanUps = field(init=False)
    care: ThreadCare = field(init=False)

    def __attrs_post_init__(self) -> None:
        store, self.commits = memory_store(None if self.earlier is None else self.earlier.db)
        self.threads = Threads(
            store=store,
            chat_id=self.chat_id,
            call=self.telegram.call,
            now_ms=lambda: round(trio.current_time() * 1000),
            say=self.said.append,
        )
        self.visibility = Visibility(threads=self.threads)

        def waiting(key: str) -> int:
            return self.waits.get(key, 0)

        self.clean_ups = CleanUps(
            threads=self.threads,
            members=self.registry,
            waiting=waiting,
            profile=self.profile,
            leading=lambda: self.leads,
            policy=self.policy,
            dead=self.dead,
        )
        self.care = ThreadCare(
            threads=self.threads,
            visibility=self.visibility,
            clean_ups=self.clean_ups,
            registry=self.registry,
            waiting=waiting,
            move=self._move,
            reseat=self.reseated.append,
        )

    @property
    def profile(self) -> Profile:
        return Home(self.root).profile("default")

    async def _move(self, key: str, binding: Binding) -> None:
        self.moved.append((key, binding.thread_id))

    async def agent(self, key: str, *, run: int = 1, name: str | None = None) -> int:
        """An agent comes (for the `run`-th time) and is here; returns its thread."""
        told = registration(key, instance=f"{key}:{run}", thread_name=name or key)
        given = await self.threads.provide(told)
        thread = given.target.thread_id
        assert isinstance(thread, int)
        admit(self.registry, key, instance=f"{key}:{run}", thread=thread)
        return thread

    async def leave(self, key: str) -> None:
        """The agent says goodbye and is not here any more."""
        member = self.registry.by_key(key)
        assert member is not None
        await self.clean_ups.left(member)
        self.registry.remove(member)

    async def successor(self, **fields: Any) -> Rig:
        """The next leader, over the same store and Telegram."""
        rig = Rig(self.root, self.telegram, self.chat_id, self.policy, self.dead, self.commits, **fields)
        await rig.threads.load()
        return rig

    async def stored(self) -> list[Any]:
        return await self.threads.store.threads_kept()


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[Rig]:
    """All that a leader runs for its threads."""
    logging.getLogger("telegram_bus").setLevel(logging.INFO)
    async with trio.open_nursery() as nursery:
        for service in (rig.threads, rig.visibility, rig.clean_ups):
            await nursery.start(service.run)
        yield rig
        nursery.cancel_scope.cancel("the test is over")
