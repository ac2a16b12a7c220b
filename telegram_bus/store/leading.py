"""The leader's store: what must survive it, committed before anybody is told so."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Final

import trio
from attrs import define, field

from telegram_bus.core.bindings import Binding, CleanUp, Creation, Gone
from telegram_bus.core.errors import StateError
from telegram_bus.store import bindings, buttons, commands, files, journal, outbox
from telegram_bus.store.budget import SpentJournal
from telegram_bus.store.commits import Commits, open_commits
from telegram_bus.store.database import open_database
from telegram_bus.store.lobby import LobbyJournal
from telegram_bus.store.outbox import Begun, Open
from telegram_bus.store.schema import JOURNAL
from telegram_bus.store.told import Told, forget_departed
from telegram_bus.store.values import (
    Absence,
    Amendment,
    Claim,
    Counts,
    Listed,
    NewUpdate,
    Outcome,
    Retention,
    StoredUpdate,
)

__all__ = ["Store", "open_store"]

REMEMBERED_OWNERS: Final = 16_384
"""Owners of the newest messages are known without asking the database (about 2 MB)."""


@define(eq=False)
class Store:
    """The journal of one term: every method is committed, with fsync, when it returns.

    All of them raise LeadershipLost once a later epoch has begun, StateError when the disk fails. A caller that is
    cancelled stops waiting, but what it asked for is committed. Times are milliseconds of the wall clock.
    """

    epoch: int
    store_id: str
    notice: str | None
    _commits: Commits
    _owners: OrderedDict[tuple[int, int], str] = field(factory=OrderedDict, init=False)

    async def admit_batch(
        self,
        updates: Sequence[NewUpdate],
        next_offset: int | None,
        now_ms: int,
        amendments: Sequence[Amendment] = (),
        ends: Sequence[buttons.End] = (),
    ) -> list[StoredUpdate]:
        """Keep the updates that were not seen in the last 48 h and, with them, the offset of the next poll.

        Returns the new ones that wait, in their order. Updates that did not come from a poll leave the offset (None).
        `amendments` are edits of updates that wait already, `ends` the keyboards that the updates put an end to.
        """

        def admit(db: Connection) -> list[StoredUpdate]:
            for end in ends:
                buttons.end(db, end)
            return journal.admit_batch(db, updates, next_offset, now_ms, amendments)

        return await self._commits.run(admit)

    @property
    def keyboards(self) -> buttons.Keyboards:
        """The keyboards whose meaning is kept here."""
        return buttons.Keyboards(self._commits)

    async def admitted_for(self, update_id: int, now_ms: int) -> tuple[bool, str | None]:
        """Whether the update was admitted in the last 48 h, and for whom, as long as that is known."""
        return await self._commits.run(lambda db: journal.admitted_for(db, update_id, now_ms))

    async def waiting_message(self, owner_key: str, chat_id: int, message_id: int) -> StoredUpdate | None:
        """The owner's update that brought this message, if it still waits."""
        return await self._commits.run(lambda db: journal.waiting_message(db, owner_key, chat_id, message_id))

    async def newest_seq(self) -> int:
        """The number of the update that was stored last; 0 where there is none."""
        return await self._commits.run(journal.newest_seq)

    async def offset(self) -> int:
        """The offset of the next poll; 0 at the very beginning."""
        return await self._commits.run(journal.offset)

    async def assign(self, seq: int, owner_key: str | None) -> bool:
        """Give a waiting update to an owner; False where it does not wait any more."""
        return await self._commits.run(lambda db: journal.assign(db, seq, owner_key))

    async def pending(self, owner_key: str | None, limit: int) -> list[StoredUpdate]:
        """The owner's waiting updates (None: those that have no owner), the oldest first."""
        return await self._commits.run(lambda db: journal.pending(db, owner_key, limit))

    async def recent(self, limit: int) -> list[StoredUpdate]:
        """The newest updates, settled or not, the oldest of them first."""
        return await self._commits.run(lambda db: journal.recent(db, limit))

    async def recent_answers(self, limit: int) -> list[tuple[str, bytes]]:
        """What the newest calls were answered with, each with the key of its caller, the oldest of them first."""
        return await self._commits.run(lambda db: journal.recent_answers(db, limit))

    async def recall_owners(self) -> None:
        """Bring the owners of the newest messages into memory, where `owner_nowait` looks."""
        for chat_id, message_id, key in await self._commits.run(
            lambda db: journal.newest_owners(db, REMEMBERED_OWNERS)
        ):
            self._remember(chat_id, message_id, key)

    async def waiting(self) -> dict[str | None, int]:
        """How many updates wait for each owner; None stands for those that have no owner."""
        return await self._commits.run(journal.waiting)

    async def settle(self, seq: int, outcome: Outcome, now_ms: int, reason: str | None = None) -> bool:
        """End an update; False where it had ended before, and then its first outcome stays."""
        return await self._commits.run(lambda db: journal.settle(db, seq, outcome, now_ms, reason))

    async def expire(self, owner_key: str, before_ms: int, now_ms: int, reason: str) -> list[int]:
        """Set aside what waits for the owner since before then; returns the numbers of those updates."""
        return await self._commits.run(lambda db: journal.expire(db, owner_key, before_ms, now_ms, reason))

    async def listed(self, *, aside: bool, limit: int, since_ms: int = 0) -> list[Listed]:
        """What waits or (`aside`) was set aside since then, the oldest first."""
        return await self._commits.run(lambda db: journal.listed(db, aside, limit, since_ms))

    async def retry(self, seq: int) -> StoredUpdate | None:
        """An update that was set aside waits again; None where it was not set aside."""
        return await self._commits.run(lambda db: journal.retry(db, seq))

    async def drop(self, seq: int, now_ms: int) -> Listed | None:
        """Let go of an update that waits or was set aside, and return it as it was; None where it does neither."""
        return await self._commits.run(lambda db: journal.drop(db, seq, now_ms))

    async def absences(self) -> list[Absence]:
        """The followers that were away when the last leader looked."""
        return await self._commits.run(journal.absences)

    async def note_absence(self, absence: Absence) -> None:
        """Remember that a follower is away, and whether people know that something is kept for it."""
        await self._commits.run(lambda db: journal.note_absence(db, absence))

    async def note_presence(self, key: str) -> None:
        """The follower is here (again)."""
        await self._commits.run(lambda db: journal.note_presence(db, key))

    async def note_attempt(self, seq: int) -> int:
        """Count one more attempt to deliver a waiting update; returns how many there were."""
        return await self._commits.run(lambda db: journal.note_attempt(db, seq))

    async def threads_kept(self) -> list[Binding | Creation | CleanUp]:
        """All that earlier leaders knew of threads: who has which, which are being made, which shall go."""
        return await self._commits.run(bindings.kept)

    async def note_threads(self, changes: Sequence[Binding | Creation | CleanUp | Gone]) -> None:
        """Store what a `Book` of threads changed, all of it or nothing."""
        if changes:
            await self._commits.run(lambda db: bindings.note(db, changes))

    async def holds_clean_up(self, row: CleanUp) -> bool:
        """Whether the thread shall still be cleaned up in this way; as every method, only under the current epoch."""
        return await self._commits.run(lambda db: bindings.holds(db, row))

    async def record_messages(self, key: str, messages: Sequence[tuple[int, int, int | None]], now_ms: int) -> None:
        """Note that the follower sent the messages, each given as (chat, message, thread)."""
        await self._commits.run(lambda db: journal.record_messages(db, key, messages, now_ms))
        self._remember_all(key, messages)

    async def owner_of(self, chat_id: int, message_id: int) -> str | None:
        """Who sent the message, or None. No checkpoint where `owner_nowait` knows it."""
        known = self.owner_nowait(chat_id, message_id)
        if known is None:
            known = await self._commits.run(lambda db: journal.owner_of(db, chat_id, message_id))
            if known is not None:
                self._remember(chat_id, message_id, known)
        return known

    def owner_nowait(self, chat_id: int, message_id: int) -> str | None:
        """Who sent the message, if it is among those that memory holds."""
        return self._owners.get((chat_id, message_id))

    async def record_files(self, pairs: Sequence[tuple[str, str]], now_ms: int) -> None:
        """Note that followers have files, each (file id, key): they may fetch them from now on."""
        await self._commits.run(lambda db: files.record_files(db, pairs, now_ms))

    async def own_files(self, key: str, file_ids: Sequence[str]) -> list[str]:
        """Those of the files that are the follower's."""
        return await self._commits.run(lambda db: files.own_files(db, key, file_ids))

    async def note_given(self, messages: Sequence[tuple[tuple[int, int], str]], now_ms: int) -> None:
        """Note that followers were given people's messages, each ((chat, message), key): they may react to them."""
        await self._commits.run(lambda db: files.note_given(db, messages, now_ms))

    async def given_to(self, chat_id: int, message_id: int) -> str | None:
        """Who was given this person's message, or None."""
        return await self._commits.run(lambda db: files.given_to(db, chat_id, message_id))

    async def command_offers(self) -> list[tuple[str, bytes]]:
        """What each follower offers for the menu of commands, opaque here, in the order of the keys."""
        return await self._commits.run(commands.offers)

    async def note_offer(self, key: str, offer: bytes | None, now_ms: int) -> None:
        """A follower's offer replaces its last one; None: it offers nothing any more."""
        await self._commits.run(lambda db: commands.note_offer(db, key, offer, now_ms))

    async def forget_offers(self, keys: Sequence[str]) -> None:
        """These followers are gone for good."""
        await self._commits.run(lambda db: commands.forget_offers(db, keys))

    async def menu_digest(self, chat_id: int) -> str | None:
        """What tells the menu that the chat was given last from others; None: it has none of ours."""
        return await self._commits.run(lambda db: commands.menu_digest(db, chat_id))

    async def note_menu(self, chat_id: int, digest: str | None, now_ms: int) -> None:
        """Telegram has this menu for the chat now; None: ours was taken away."""
        await self._commits.run(lambda db: commands.note_menu(db, chat_id, digest, now_ms))

    async def known_call(self, key: str, request_id: str, digest: str) -> Claim:
        """What is known of a call; `New`: nothing, or that it waits to be sent, and it is not claimed by this."""
        return await self._commits.run(lambda db: outbox.known_call(db, (key, request_id), digest))

    async def accept_call(
        self, key: str, request_id: str, digest: str, now_ms: int, what: tuple[str, bytes | None] = ("", None)
    ) -> Claim:
        """Keep a call until it is settled (`what`: its method and parameters); only `New` permits to send it."""
        call = (key, request_id)
        return await self._commits.run(lambda db: outbox.accept_call(db, call, digest, what, self.epoch, now_ms))

    async def claim_call(
        self, key: str, request_id: str, digest: str, now_ms: int, what: tuple[str, bytes | None] = ("", None)
    ) -> Claim:
        """Claim a call that must not be repeated before it is sent; only `New` permits to send it.

        `Unknown`: it was claimed before and has no answer, so it may have been carried out (a call of this very
        term that is still under way looks the same: the ledger knows those). `digest` tells calls apart.
        """
        call = (key, request_id)
        return await self._commits.run(lambda db: outbox.claim_call(db, call, digest, what, self.epoch, now_ms))

    async def settle_call(
        self, key: str, request_id: str, answer: bytes, now_ms: int, *, sent: Sequence[tuple[int, int, int | None]] = ()
    ) -> None:
        """Store what a repetition of the call is answered with (opaque here), be it a result or a refusal.

        `sent` are the messages that it sent, as in `record_messages`. Raises StateError where the call was not
        claimed.
        """

        def settle(db: Connection) -> None:
            outbox.settle_call(db, (key, request_id), answer, now_ms)
            journal.record_messages(db, key, sent, now_ms)

        await self._commits.run(settle)
        self._remember_all(key, sent)

    async def release_call(self, key: str, request_id: str, body: bytes | None = None) -> bool:
        """A claimed call was surely not sent and waits again, with the parameters `body` where those are given."""
        return await self._commits.run(lambda db: outbox.release_call(db, (key, request_id), body))

    async def withdraw_call(self, key: str, request_id: str) -> bool:
        """Forget a call that was surely not sent and will not be; False where there is none, or an answer."""
        return await self._commits.run(lambda db: outbox.withdraw_call(db, (key, request_id)))

    async def doubt_call(self, key: str, request_id: str) -> Open | None:
        """Nobody knows whether the claimed call was carried out; returns it."""
        return await self._commits.run(lambda db: outbox.doubt_call(db, (key, request_id)))

    async def begin_calls(self, limit: int) -> Begun:
        """What earlier leaders had claimed is unknown from now on; returns what they left, `limit` unknown calls."""
        return await self._commits.run(lambda db: outbox.begin_term(db, self.epoch, limit))

    async def accepted_calls(self, key: str, after_seq: int, limit: int) -> list[Open]:
        """The key's calls that wait to be sent, in the order of their acceptance, behind `after_seq`."""
        return await self._commits.run(lambda db: outbox.accepted_calls(db, key, after_seq, limit))

    async def untold_calls(self, limit: int) -> list[Open]:
        """Unknown calls of which no person was told yet."""
        return await self._commits.run(lambda db: outbox.untold_calls(db, limit))

    async def tell_doubt(self, seq: int, notice: tuple[str, str, str, bytes] | None, now_ms: int) -> Open | None:
        """Accept a notice (request id, digest, method, parameters) about an unknown call, once; returns it."""
        return await self._commits.run(lambda db: outbox.tell_doubt(db, seq, notice, self.epoch, now_ms))

    async def send_again(self, seq: int, tries: int, now_ms: int) -> Open | None:
        """Accept an unknown call anew, once for each number of `tries`; None where it is not unknown any more."""
        return await self._commits.run(lambda db: outbox.again(db, seq, tries, now_ms))

    async def park(self, chat_id: int, why: str, now_ms: int) -> None:
        """Nothing can be sent to the chat for now."""
        await self._commits.run(lambda db: outbox.park(db, chat_id, why, now_ms))

    async def unpark(self, chat_id: int) -> bool:
        """The chat can be written to again; False where it was not parked."""
        return await self._commits.run(lambda db: outbox.unpark(db, chat_id))

    @property
    def lobby(self) -> LobbyJournal:
        """What nobody owns, who writes to whom in one chat, who is muted."""
        return LobbyJournal(self._commits, self.epoch)

    @property
    def told(self) -> Told:
        """What people were told of the chat, and what agents say of themselves."""
        return Told(self._commits)

    @property
    def spent(self) -> SpentJournal:
        """What counts for Telegram's limits."""
        return SpentJournal(self._commits, self.epoch)

    async def purge(self, now_ms: int, keep: Retention | None = None) -> int:
        """Delete settled updates a day old, ids of 48 h, message owners of 90 days; returns how many rows went.

        `keep` has other times than these.
        """
        times = keep or Retention()

        def purge(db: Connection) -> int:
            return journal.purge(db, now_ms, times) + forget_departed(db, now_ms - times.owners)

        gone = await self._commits.run(purge)
        return gone + await self.lobby.purge(now_ms, times.bodies)

    async def counts(self) -> Counts:
        """How much there is of everything, for the status."""
        return await self._commits.run(journal.counts)

    def _remember_all(self, key: str, messages: Sequence[tuple[int, int, int | None]]) -> None:
        for chat_id, message_id, _ in messages:
            self._remember(chat_id, message_id, key)

    def _remember(self, chat_id: int, message_id: int, key: str) -> None:
        self._owners[chat_id, message_id] = key
        self._owners.move_to_end((chat_id, message_id))
        if len(self._owners) > REMEMBERED_OWNERS:
            self._owners.popitem(last=False)


@asynccontextmanager
async def open_store(path: Path, *, holder: str, after_epoch: int = 0) -> AsyncIterator[Store]:
    """Open the journal as the holder of the leader's lock (nobody else may), and begin the next epoch.

    `holder` is who leads, for people; the new epoch is also above `after_epoch` (that of leader.json, so that it
    grows even after a damaged journal was replaced). When the context ends, what was asked for is committed and
    no thread is at work. `Store.notice` says, for people, when a damaged journal was set aside.

    Raises StateError for a file that is foreign, of a newer version or cannot be opened.
    """
    opened = await trio.to_thread.run_sync(open_database, path, JOURNAL)
    try:
        start = partial(journal.start_term, opened.connection, holder, after_epoch)
        store_id, epoch = await trio.to_thread.run_sync(start)
    except BaseException as fault:
        opened.connection.close()
        if isinstance(fault, sqlite3.Error):  # a big file, which is not checked as a whole, or a disk that fails
            raise StateError(f"{path} cannot be used ({fault}); see to the disk, or move the file away") from fault
        raise
    async with open_commits(opened.connection, partial(journal.check_term, epoch), str(path)) as commits:
        yield Store(epoch, store_id, opened.notice, commits)
