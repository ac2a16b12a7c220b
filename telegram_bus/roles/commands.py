"""The chat's menu of commands: what each follower offers is kept, merged, and given to Telegram when it has changed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.commands import LEADERS, SHARED, Command, Offer, merged, offered
from telegram_bus.core.errors import ApiError, BusError, RequestRefused, StateError
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member, Registry
from telegram_bus.roles.threads import Call, Threads
from telegram_bus.store import Store

__all__ = ["Commands"]

log = logging.getLogger(__name__)

METHODS: Final = frozenset({"setMyCommands", "deleteMyCommands", "getMyCommands"})

SETTLE: Final = 2.0
"""Seconds in which further changes are waited for: agents that start together change the menu once."""

AGAIN: Final = 30.0
"""Seconds before a menu that Telegram did not get is given to it again, and between two looks for who is gone."""

GRACE: Final = 60.0
"""Seconds of a leader's term in which nobody counts as gone: followers find it within seconds."""


GONE_MS: Final = 30 * 86_400_000
"""Whoever has been away for so long is gone for good, thread or not; its commands come back with it."""


@define(kw_only=True, eq=False)
class Commands:
    """The offers of one term, in the store before their followers hear that they are taken.

    A menu is set for the chat only (the bot's others stay as its owner made them), and taken away when nobody offers
    anything any more. What Telegram has is known by a digest in the store: after a restart nothing is set anew.
    `shared` says whether agents share the main chat, where people choose one of them (`/use`).
    """

    store: Store = field(repr=False)
    threads: Threads = field(repr=False)
    members: Registry = field(repr=False)
    call: Call = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    away_since: Callable[[str], int | None] = field(default=lambda _: None, repr=False)
    shared: Callable[[], bool] = field(default=lambda: False, repr=False)
    _offers: dict[str, tuple[Command, ...]] = field(factory=dict)
    _changed: trio.Event = field(factory=trio.Event)
    _refused: str | None = None  # the menu that Telegram does not take: only another is tried

    async def load(self) -> None:
        """Read what earlier leaders were offered."""
        self._offers = {
            key: tuple(Command(*one) for one in loads(kept)) for key, kept in await self.store.command_offers()
        }

    def handles(self, call: Allowed) -> bool:
        """Whether the call is about the menu, and so is answered here instead of by Telegram."""
        return call.api_method in METHODS

    async def serve(self, member: Member, call: Allowed) -> Any:
        """What the call comes to: the follower's whole offer is replaced, taken back, or told.

        Raises RequestRefused for names or descriptions that Telegram does not take, and StateError.
        """
        if call.api_method == "getMyCommands":
            return [{"command": one.name, "description": one.description} for one in self._offers.get(member.key, ())]
        if call.body.get("language_code"):  # of a version-1 peer; ours are told that there is one menu
            return True
        try:
            wanted = offered(call.body.get("commands")) if call.api_method == "setMyCommands" else ()
        except ValueError as error:
            raise RequestRefused(f"{call.api_method}: {error}", method=call.api_method) from None
        if wanted != self._offers.get(member.key, ()):
            await self.store.note_offer(member.key, dumps(wanted) if wanted else None, self.now_ms())
            self._offers[member.key] = wanted
            if not wanted:
                del self._offers[member.key]
            self._changed.set()
        return True

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep Telegram's menu as it should be, until cancelled."""
        begun = trio.current_time()
        task_status.started()
        while True:
            await trio.sleep(SETTLE)
            self._changed = trio.Event()
            try:
                if trio.current_time() - begun >= GRACE:
                    await self._forget_gone()
                await self._set()
            except StateError as error:  # a full disk: later
                log.warning("the menu of commands is not kept: %s", error)
            with trio.move_on_after(AGAIN):
                await self._changed.wait()

    async def _forget_gone(self) -> None:
        """Drop the offers of followers that are not here and have no thread to return to, or have not for long."""
        gone = [key for key in self._offers if self.members.by_key(key) is None and not self._returns(key)]
        if gone:
            await self.store.forget_offers(gone)
            for key in gone:
                del self._offers[key]

    def _returns(self, key: str) -> bool:
        binding, since = self.threads.of_key(key), self.away_since(key)
        long_gone = since is not None and self.now_ms() - since > GONE_MS
        return binding is not None and binding.gone_ms is None and not long_gone

    async def _set(self) -> None:
        chat_id = self.threads.chat_id
        offers = [Offer(self.threads.name_of(key), self._offers[key]) for key in sorted(self._offers)]
        menu = merged(offers, SHARED if self.shared() else LEADERS)
        digest = sha256(dumps(menu)).hexdigest() if menu else None
        if digest == await self.store.menu_digest(chat_id) or (digest is not None and digest == self._refused):
            return
        scope = {"type": "chat", "chat_id": chat_id}
        try:
            if menu:
                await self.call("setMyCommands", {"commands": menu, "scope": scope}, None)
            else:
                await self.call("deleteMyCommands", {"scope": scope}, None)
        except ApiError as error:
            log.warning("Telegram does not take the menu of commands: %s", error.description)
            self._refused = digest if error.code == 400 else None
            return
        except BusError as error:
            log.warning("the menu of commands is set later: %s", error)
            return
        await self.store.note_menu(chat_id, digest, self.now_ms())
        log.info("the chat's menu has %d commands", len(menu))
