"""A real leader in this process that is given updates as its poller would give them; says in JSON how they fared."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from benchmarks._bus import FIRST_THREAD, Place, one_line, running
from telegram_bus.core.envelopes import Ack, Forward
from telegram_bus.core.registry import Member
from telegram_bus.core.routing import Rules
from telegram_bus.roles.absences import Absences
from telegram_bus.roles.buttons import LeaderButtons
from telegram_bus.roles.intake import Intake
from telegram_bus.roles.leader import run_leader
from telegram_bus.roles.lobby import LobbyDesk
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.settings import Settings, load_settings
from telegram_bus.roles.term import Term

__all__ = ["keys"]

BATCH = 100  # updates of one poll, as Telegram gives them at most
AHEAD = 300  # updates that may be under way: a backlog, as after an outage


def keys(count: int) -> list[str]:
    """The binding keys of the followers, in the order of their threads."""
    return [f"f{number}" for number in range(count)]


@define
class _Receipts:
    """Counts the receipts of followers, on their way to the leader's deliveries."""

    forward: Callable[[Member, Forward], Awaitable[Ack]]
    count: int = 0
    came: trio.Event = field(factory=trio.Event)

    async def __call__(self, member: Member, envelope: Forward) -> Ack:
        ack = await self.forward(member, envelope)
        assert ack.ok, ack.message
        self.count += 1
        self.came.set()
        self.came = trio.Event()
        return ack

    async def wait(self, count: int) -> None:
        while self.count < count:
            await self.came.wait()


def _updates(chat_id: int, followers: int) -> Iterator[dict[str, Any]]:
    """Messages of the owner, into one thread after another."""
    owner = {"id": chat_id, "is_bot": False, "first_name": "Olivia"}
    number = time.time_ns() // 1_000_000  # none that the journal has seen
    while True:
        number += 1
        yield {
            "update_id": number,
            "message": {
                "message_id": number,
                "date": int(time.time()),
                "chat": {"id": chat_id, "type": "private", "first_name": "Olivia"},
                "from": owner,
                "message_thread_id": FIRST_THREAD + number % followers,
                "is_topic_message": True,
                "text": "please look into the failing test of the parser, and say what you find " * 4,
            },
        }


async def _alone(intake: Intake, receipts: _Receipts, updates: Iterator[dict[str, Any]], count: int) -> list[float]:
    times = []
    for _ in range(count):
        update, expected = next(updates), receipts.count + 1
        begin = time.perf_counter()
        await intake.commit([update], 0)
        await receipts.wait(expected)
        times.append(time.perf_counter() - begin)
        await trio.sleep(0.002)  # its settling is not part of the next one
    return times


async def _rate(intake: Intake, receipts: _Receipts, updates: Iterator[dict[str, Any]], count: int) -> float:
    before, begin = receipts.count, time.perf_counter()
    for given in range(0, count, BATCH):
        await receipts.wait(before + given - AHEAD)
        await intake.commit([next(updates) for _ in range(BATCH)], 0)
    await receipts.wait(before + count)
    return count / (time.perf_counter() - begin)


async def _measure(place: Place, settings: Settings, options: argparse.Namespace) -> dict[str, Any]:
    async with trio.open_nursery() as nursery:
        term: Term = await nursery.start(partial(run_leader, place.profile, settings))
        rules = Rules(chat_id=settings.chat, allowed=frozenset(settings.allow), bot_id=settings.bot_id)
        notices = Notices(chat_id=settings.chat, call=term.threads.call)
        absences = Absences(
            store=term.store,
            threads=term.threads,
            members=term.registry,
            deliveries=term.deliveries,
            notices=notices,
            now_ms=term.now_ms,
        )
        buttons = term.buttons  # the leader's own desk answers them: this one only says what is nobody's
        term.buttons = LeaderButtons(call=term.threads.call, store=term.store, now_ms=term.now_ms)
        desk = LobbyDesk(term=term, rules=lambda: rules, call=term.threads.call)
        term.buttons = buttons
        intake = Intake(term=term, rules=lambda: rules, lobby=desk, absences=absences, notices=notices)
        receipts = _Receipts(term.deliveries.forward)
        term.deliveries.forward = receipts
        with ExitStack() as stack:
            for key in keys(options.followers):
                process = stack.enter_context(running(place, "benchmarks._follower", key, options.then))
                await trio.to_thread.run_sync(one_line, process)
            updates = _updates(settings.chat, options.followers)
            await _rate(intake, receipts, updates, BATCH)  # each link is open, each import done
            times = await _alone(intake, receipts, updates, options.alone)
            rate = await _rate(intake, receipts, updates, options.many) if options.many else 0.0
        nursery.cancel_scope.cancel("measured")
    return {"times": times, "rate": rate}


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("root", "api_root", "token", "then"):
        parser.add_argument(name)
    for name in ("chat", "followers", "alone", "many"):
        parser.add_argument(name, type=int)
    options = parser.parse_args()
    place = Place(Path(options.root))
    given = {"api_root": options.api_root, "chat": str(options.chat), "spare": False}
    settings = load_settings(place.profile, given, {"TELEGRAM_BOT_TOKEN": options.token})
    json.dump(trio.run(_measure, place, settings, options), sys.stdout)
    print(flush=True)


if __name__ == "__main__":
    main()
