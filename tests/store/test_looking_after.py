"""What is set aside, listed, retried and amended, who is away, and databases of earlier versions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from telegram_bus.core.bindings import Binding, Creation
from telegram_bus.store import (
    Absence,
    Amendment,
    NewUpdate,
    Repeat,
    Retention,
    Unknown,
    open_inbox,
    open_store,
)
from telegram_bus.store.database import Schema, open_database
from telegram_bus.store.schema import INBOX, JOURNAL

FIXTURES = Path(__file__).with_name("fixtures")
NOW = 1_000_000_000
HOUR = 3_600_000


def update(update_id: int, key: str | None = "builder", **fields: object) -> NewUpdate:
    plain = NewUpdate(
        update_id=update_id, kind="message", body=b"%d" % update_id, owner_key=key, chat_id=-100, message_id=update_id
    )
    return attrs.evolve(plain, **fields)  # type: ignore[arg-type]


def restore(name: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as old:
        old.executescript((FIXTURES / name).read_text())


def beside(path: Path, version: int = 1) -> list[Path]:
    return list(path.parent.glob(f"{path.name}.version-{version}-*"))


async def test_a_journal_of_version_1_keeps_all_it_had(tmp_path: Path) -> None:
    path = tmp_path / "bus.sqlite3"
    restore("journal-1.sql", path)
    async with open_store(path, holder="x") as store:
        assert store.notice is None
        assert (store.epoch, store.store_id) == (8, "0123456789abcdef0123456789abcdef")
        assert await store.offset() == 1235
        [waiting] = await store.pending("builder", 10)
        assert (waiting.update_id, waiting.body) == (1234, b'{"update_id":1234}')
        assert await store.owner_of(-100, 5) == "builder"
        assert [row.thread_id for row in await store.threads_kept() if isinstance(row, Binding)] == [11]
        assert await store.admit_batch([update(1233)], 1235, 2_000) == []
        assert await store.absences() == []
    assert beside(path)
    with closing(sqlite3.connect(path)) as now:
        assert now.execute("PRAGMA user_version").fetchone() == (JOURNAL.version,)


async def test_a_journal_of_version_2_keeps_all_it_had_and_says_again_what_nobody_can_tell(tmp_path: Path) -> None:
    path = tmp_path / "bus.sqlite3"
    restore("journal-2.sql", path)
    async with open_store(path, holder="x") as store:
        assert store.notice is None
        assert (store.epoch, await store.offset()) == (8, 1237)
        assert [one.update_id for one in await store.pending("builder", 10)] == [1234]
        [waiting] = await store.pending("builder", 10)
        assert waiting.attempts == 3
        assert [one.update_id for one in await store.lobby.unattended(10)] == [1236]
        [aside] = await store.listed(aside=True, limit=10)
        assert (aside.update.update_id, aside.reason) == (1235, "builder refused it 20 times: full")
        assert await store.absences() == [Absence(key="tester", since_ms=955, told=True)]
        assert await store.threads_kept() == [
            Binding("builder", -100, 11, "Builder", 900),
            Creation("tester", -100, "Tester", 910, None),  # whether it was made is not known: it is looked for
        ]
        assert await store.claim_call("builder", "r1", "d", NOW) == Repeat(b'{"ok":true}')
        assert await store.claim_call("builder", "r2", "e", NOW) == Unknown()
        assert await store.owner_of(-100, 5) == "builder"
        assert await store.admit_batch([update(1236)], 1238, 2_000) == []
    assert beside(path, 2)


@pytest.mark.parametrize(("name", "schema"), [("journal", JOURNAL), ("inbox", INBOX)])
def test_a_database_of_each_earlier_version_becomes_what_a_new_one_is(
    tmp_path: Path, name: str, schema: Schema
) -> None:
    def tables(path: Path) -> set[tuple[str, str, str]]:
        with closing(open_database(path, schema).connection) as database:
            rows = database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL").fetchall()
        return {(kind, what, " ".join(sql.replace('"', "").split())) for kind, what, sql in rows}

    new = tables(tmp_path / "new")
    earlier = range(1, schema.version)
    assert list(earlier)
    for version in earlier:
        path = tmp_path / f"of-{version}"
        restore(f"{name}-{version}.sql", path)
        assert {row[:2] for row in tables(path)} == {row[:2] for row in new}


async def test_an_inbox_of_version_1_keeps_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "inbox.sqlite3"
    restore("inbox-1.sql", path)
    async with open_inbox(path, clock=lambda: 2.0) as inbox:
        assert [one.source_update_id for one in await inbox.pending()] == [5]
    with closing(sqlite3.connect(path)) as now:
        assert now.execute("PRAGMA user_version").fetchone() == (INBOX.version,)


async def test_what_was_set_aside_can_be_listed_retried_and_dropped(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        one, two, three = await store.admit_batch([update(1), update(2), update(3, "other")], 4, NOW)
        await store.note_attempt(one.seq)
        await store.settle(one.seq, "rejected", NOW, "it refused")
        assert await store.expire("builder", NOW + 1, NOW + 5, "away") == [two.seq]
        listed = await store.listed(aside=True, limit=10)
        assert [(each.update.seq, each.outcome, each.reason) for each in listed] == [
            (one.seq, "rejected", "it refused"),
            (two.seq, "expired", "away"),
        ]
        assert [each.update.seq for each in await store.listed(aside=False, limit=10)] == [three.seq]
        again = await store.retry(one.seq)
        assert again is not None
        assert (again.seq, again.attempts) == (one.seq, 0)
        assert await store.retry(three.seq) is None  # it waits
        assert await store.drop(two.seq, NOW) is not None
        assert await store.drop(three.seq, NOW) is not None
        assert await store.drop(two.seq, NOW) is None
        assert [each.seq for each in await store.pending("builder", 10)] == [one.seq]
        assert await store.listed(aside=True, limit=10) == []


async def test_what_was_set_aside_outlives_what_was_settled(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        one, two = await store.admit_batch([update(1), update(2)], 3, NOW)
        await store.settle(one.seq, "accepted", NOW)
        await store.settle(two.seq, "rejected", NOW)
        assert await store.purge(NOW + 25 * HOUR) == 1
        assert len(await store.listed(aside=True, limit=10)) == 1
        assert await store.purge(NOW + 2 * HOUR, Retention(aside=HOUR)) == 1


@pytest.mark.parametrize("again", [False, True])
async def test_an_edit_changes_what_waits_and_only_once(tmp_path: Path, again: bool) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        [one] = await store.admit_batch([update(1)], 2, NOW)
        found = await store.waiting_message("builder", -100, 1)
        assert found == one
        assert await store.waiting_message("other", -100, 1) is None
        await store.admit_batch([], 3, NOW, [Amendment(update_id=2, seq=one.seq, body=b"new")])
        if again:
            await store.admit_batch([], 3, NOW, [Amendment(update_id=2, seq=one.seq, body=b"newer")])
        assert [each.body for each in await store.pending("builder", 1)] == [b"new"]
        await store.settle(one.seq, "accepted", NOW)
        assert await store.waiting_message("builder", -100, 1) is None


async def test_an_update_with_an_outcome_is_kept_and_does_not_wait(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        assert await store.admit_batch([update(1, None, kind="other", outcome="dropped")], 2, NOW) == []
        assert (await store.counts()).settled == 1
        assert await store.newest_seq() == 1


async def test_an_id_that_comes_again_long_after_is_another_update(tmp_path: Path) -> None:
    """Ids begin anew after a week without updates; nobody purged in that week, because nobody led."""
    async with open_store(tmp_path / "db", holder="x") as store:
        assert len(await store.admit_batch([update(1)], 2, NOW)) == 1
        assert await store.admit_batch([update(1)], 2, NOW + 48 * HOUR) == []
        assert len(await store.admit_batch([update(1)], 2, NOW + 49 * HOUR)) == 1
        assert await store.admit_batch([update(1)], 2, NOW + 50 * HOUR) == []


async def test_absences_outlive_the_leader(tmp_path: Path) -> None:
    away = Absence(key="builder", since_ms=5)
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.note_absence(away)
        await store.note_absence(Absence(key="other", since_ms=6))
        await store.note_presence("other")
    async with open_store(tmp_path / "db", holder="y") as store:
        assert await store.absences() == [away]
        await store.note_absence(attrs.evolve(away, told=True))
        assert [absence.told for absence in await store.absences()] == [True]
