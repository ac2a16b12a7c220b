"""Opening a database file: private, migrated with a copy, replaced when damaged, refused when it is not ours."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from telegram_bus.core.errors import StateError
from telegram_bus.store.database import Schema, open_database

ONE = Schema(application_id=77, steps=("CREATE TABLE a (x INTEGER)",))
TWO = Schema(application_id=77, steps=(*ONE.steps, "ALTER TABLE a ADD COLUMN y TEXT DEFAULT 'new'; CREATE TABLE b (z)"))
BROKEN = Schema(application_id=77, steps=(*ONE.steps, "CREATE TABLE b (z); CREATE TABLE a (again)"))


def make(path: Path, schema: Schema, rows: int = 3) -> None:
    with closing(open_database(path, schema).connection) as connection:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO a (x) VALUES (?)", [(row,) for row in range(rows)])
        connection.execute("COMMIT")


def beside(path: Path, why: str) -> list[Path]:
    return [name for name in path.parent.glob(f"{path.name}.{why}-*") if not name.name.endswith(("-wal", "-shm"))]


def test_a_new_file_and_what_sqlite_keeps_beside_it_are_private(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(open_database(path, ONE).connection) as connection:
        connection.execute("INSERT INTO a VALUES (1)")
        modes = {name.name: stat.S_IMODE(name.stat().st_mode) for name in tmp_path.iterdir()}
        assert modes == {"db": 0o600, "db-wal": 0o600, "db-shm": 0o600}
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_file_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.touch(0o644)
    path.chmod(0o644)
    open_database(path, ONE).connection.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_later_version_keeps_the_rows_and_sets_a_copy_of_the_old_file_aside(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path, ONE)
    opened = open_database(path, TWO)
    with closing(opened.connection) as connection:
        assert opened.notice is None
        assert connection.execute("SELECT x, y FROM a").fetchall() == [(0, "new"), (1, "new"), (2, "new")]
    [copy] = beside(path, "version-1")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as old:
        assert old.execute("SELECT * FROM a").fetchall() == [(0,), (1,), (2,)]
        assert old.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path, ONE)
    with pytest.raises(StateError, match="already exists"):
        open_database(path, BROKEN)
    with closing(open_database(path, ONE).connection) as connection:
        assert connection.execute("SELECT count(*) FROM a").fetchone() == (3,)
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'b'").fetchone() is None


def test_a_file_of_a_newer_version_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path, TWO)
    before = path.read_bytes()
    with pytest.raises(StateError, match="newer telegram_bus") as caught:
        open_database(path, ONE)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StateError, match="another program"):
        open_database(path, ONE)
    assert path.read_bytes() == before


def damage_everything(path: Path) -> None:
    path.write_bytes(b"this is no database at all, " * 500)


def damage_a_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 : 2 * 4096] = b"\xff" * 4096
    path.write_bytes(bytes(content))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:6000])


@pytest.mark.parametrize("damage", [damage_everything, damage_a_page, cut_off])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun_with_a_notice(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    path = tmp_path / "db"
    make(path, ONE, rows=2000)
    damage(path)
    content = path.read_bytes()
    opened = open_database(path, ONE)
    with closing(opened.connection) as connection:
        assert connection.execute("SELECT count(*) FROM a").fetchone() == (0,)
    [aside] = beside(path, "damaged")
    assert aside.read_bytes() == content
    assert opened.notice is not None
    assert aside.name in opened.notice
    again = open_database(path, ONE)
    again.connection.close()
    assert again.notice is None


def test_two_damaged_files_in_one_second_get_two_names(tmp_path: Path) -> None:
    path = tmp_path / "db"
    for _ in range(2):
        damage_everything(path)
        open_database(path, ONE).connection.close()
    assert len(beside(path, "damaged")) == 2


def test_what_is_no_file_of_ours_is_refused_by_name(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for path in (directory, link, tmp_path / "missing" / "db"):
        with pytest.raises(StateError) as caught:
            open_database(path, ONE)
        assert str(path) in str(caught.value)
