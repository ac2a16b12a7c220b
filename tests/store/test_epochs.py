"""Who was succeeded changes nothing more, by whatever method of the store: all of them, found by looking."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.core.errors import LeadershipLost
from telegram_bus.store import NewUpdate, Store, open_store
from telegram_bus.store.budget import Hold

Method = Callable[..., Awaitable[Any]]

NOW = 1_000_000_000


def methods(store: Store) -> Iterator[tuple[str, Method]]:
    """Everything that can be asked of a store, also of its parts."""
    for part in (store, store.lobby, store.keyboards, store.spent):
        for name, method in inspect.getmembers(part, inspect.iscoroutinefunction):
            if not name.startswith("_"):
                yield f"{type(part).__name__}.{name}", method


def anything(method: Method) -> list[object]:
    """Arguments for it: what they are does not matter where nothing is done with them."""
    wanted = inspect.signature(method).parameters.values()
    return [object() for one in wanted if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


def named(method: Method) -> dict[str, object]:
    wanted = inspect.signature(method).parameters.values()
    return {one.name: object() for one in wanted if one.default is one.empty and one.kind is one.KEYWORD_ONLY}


def content(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


async def test_every_method_of_a_store_asks_for_the_epoch(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with open_store(path, holder="old") as old:
        known = list(methods(old))
        assert len(known) > 60  # else they are looked for in the wrong place
        await old.admit_batch([NewUpdate(update_id=1, kind="message", body=b"x", owner_key="a")], 2, NOW)
        async with open_store(path, holder="new"):
            before = content(path)
            for name, method in known:
                with pytest.raises(LeadershipLost, match="new leads in epoch 2"):
                    print(name, await method(*anything(method), **named(method)))
            assert content(path) == before


async def test_what_nobody_waits_for_asks_for_it_too(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with open_store(path, holder="old") as old, open_store(path, holder="new"):
        before = content(path)
        old.spent.started_soon(1, 5, 1, NOW)
        old.spent.ended_soon(1, NOW)
        old.spent.hold_soon([Hold(5, NOW, 1, 1.0)])
        with pytest.raises(LeadershipLost):
            await old.spent.flush()
        assert content(path) == before
