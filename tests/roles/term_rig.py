"""A term over a store in memory, without sockets or threads; its followers keep what they are given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field
from trio.testing import wait_all_tasks_blocked

from telegram_bus.botapi.sender import Sender
from telegram_bus.core.envelopes import Ack, Forward
from telegram_bus.core.errors import NotSent
from telegram_bus.core.permissions import repeatable
from telegram_bus.core.receiving import receipt
from telegram_bus.core.registry import Member, Registry
from telegram_bus.core.routing import Rules
from telegram_bus.home import Home
from telegram_bus.roles.absences import Absences
from telegram_bus.roles.bot import BotFacts
from telegram_bus.roles.calls import Calls
from telegram_bus.roles.deliveries import Deliveries
from telegram_bus.roles.intake import Intake
from telegram_bus.roles.links import Links
from telegram_bus.roles.lobby import PROMOTION_GRACE, LobbyDesk
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.term import Term
from telegram_bus.roles.threads import Threads
from tests.fakes import (
    BOT,
    CHAT,
    OWNER,
    SECRET,
    FakeTelegram,
    InlineCommits,
    admit,
    fake_files,
    memory_store,
    registration,
)


@define(eq=False)
class Rig:
    """The way in of a term over a store in memory; followers keep what they are given."""

    telegram: FakeTelegram = field(factory=FakeTelegram)
    earlier: InlineCommits | None = None
    expire: float | None = None
    got: list[tuple[str, int]] = field(factory=list)
    envelopes: list[Forward] = field(factory=list)
    down: bool = False
    broken: str | None = None
    commits: InlineCommits = field(init=False)
    term: Term = field(init=False)
    lobby: LobbyDesk = field(init=False)
    intake: Intake = field(init=False)
    notices: Notices = field(init=False)
    absences: Absences = field(init=False)

    def __attrs_post_init__(self) -> None:
        store, self.commits = memory_store(None if self.earlier is None else self.earlier.db)
        registry, sender = Registry(), Sender(self.telegram, repeatable=repeatable)
        self.term = Term(
            profile=Home(Path("/nowhere")).profile("default"),
            store=store,
            registry=registry,
            threads=Threads(store=store, chat_id=CHAT, call=self.telegram.call, now_ms=lambda: 1),
            calls=Calls(store=store, sender=sender, now_ms=lambda: 1, files=fake_files(self.telegram)),
            deliveries=Deliveries(store=store, members=registry, forward=self.forward, secret=SECRET, now_ms=lambda: 1),
            links=Links(),
            bot=BotFacts(id=BOT, username="a_bot"),
            lost=lambda: False,
        )
        rules = Rules(chat_id=CHAT, allowed=frozenset({OWNER}), bot_id=BOT, username="a_bot")
        self.notices = Notices(chat_id=CHAT, call=self.telegram.call)
        self.absences = Absences(
            store=store,
            threads=self.term.threads,
            members=registry,
            deliveries=self.term.deliveries,
            notices=self.notices,
            now_ms=lambda: 1 + round(trio.current_time() * 1000),
            expire=self.expire,
        )
        self.term.deliveries.aside = self.absences.set_aside
        self.lobby = LobbyDesk(term=self.term, rules=lambda: rules, call=self.telegram.call)
        self.intake = Intake(
            term=self.term,
            rules=lambda: rules,
            lobby=self.lobby,
            absences=self.absences,
            notices=self.notices,
        )

    async def forward(self, member: Member, envelope: Forward) -> Ack:
        await trio.lowlevel.checkpoint()
        if self.down:
            raise NotSent("nobody listens")
        if member.key == self.broken:
            return Ack(request_id=envelope.request_id, ok=False, message="it cannot log in")
        self.got.append((member.key, envelope.delivery.source_update_id))
        self.envelopes.append(envelope)
        return Ack(request_id=envelope.request_id, ok=True, result=receipt(envelope.delivery))

    async def agent(self, key: str, thread: int, *, here: bool = True) -> None:
        """An agent with a thread."""
        await self.term.threads.provide(registration(key, thread_name=key, thread=thread))
        if here:
            admit(self.term.registry, key, thread=thread)
            self.term.deliveries.wake([key])

    async def take(self, *batch: dict[str, Any], offset: int = 100) -> None:
        """A batch from Telegram, until everything that it leads to has happened."""
        await self.intake.commit(batch, offset)
        await wait_all_tasks_blocked()

    def rows(self) -> list[tuple[int, str | None, str | None]]:
        """Each update in the store: id, owner, outcome."""
        return self.commits.db.execute("SELECT update_id, owner_key, outcome FROM updates ORDER BY seq").fetchall()

    @property
    def said(self) -> list[str]:
        """What the leader itself wrote."""
        return [params["text"] for params in self.telegram.made("sendMessage")]


@asynccontextmanager
async def running(rig: Rig, *, opened: bool = True, begun: bool = False) -> AsyncIterator[Rig]:
    """As of a leader that has led for a while, or has just `begun`."""
    async with trio.open_nursery() as nursery:
        await rig.term.load()
        await rig.absences.load()
        nursery.start_soon(rig.term.recall_given)
        await nursery.start(rig.term.deliveries.run)
        await nursery.start(rig.term.buttons.run)
        await nursery.start(rig.term.keyboards.run)
        await nursery.start(rig.term.typing.run)
        await nursery.start(rig.lobby.run)
        await nursery.start(rig.notices.run)
        await nursery.start(rig.absences.run)
        if opened:
            rig.absences.note_open()
            rig.term.opened.set(trio.current_time() - (0.0 if begun else PROMOTION_GRACE))
        yield rig
        nursery.cancel_scope.cancel("the test is over")
