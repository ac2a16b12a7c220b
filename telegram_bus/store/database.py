"""A SQLite file of ours: opened privately, migrated after a copy was set aside, replaced when it is damaged."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import frozen

from telegram_bus.core.errors import StateError

__all__ = ["Opened", "Schema", "open_database"]

CHECKED_BYTES: Final = 16 * 1024 * 1024
"""A file up to this size is checked as a whole when it is opened (about 20 ms); it must not delay a failover."""

BUSY_SECONDS: Final = 5.0
"""How long to wait for a predecessor that is just ending its last transaction."""


@frozen(kw_only=True)
class Schema:
    """What a database holds: `steps[n]` is the SQL that leads from version n to version n + 1."""

    application_id: int
    steps: tuple[str, ...]

    @property
    def version(self) -> int:
        """The version that this program reads and writes."""
        return len(self.steps)


@frozen(kw_only=True)
class Opened:
    """An open connection (usable from any one thread at a time), and what happened on the way, for people."""

    connection: sqlite3.Connection
    notice: str | None


def open_database(path: Path, schema: Schema) -> Opened:
    """Open or create the database, mode 0600, in WAL mode with full synchronisation, at the schema's version.

    Raises StateError for a file that is not ours, that a newer version wrote or that cannot be opened.
    A damaged file is set aside under a new name and a fresh one is made; then there is a notice.
    """
    _make_private(path)
    try:
        return Opened(connection=_open_sound(path, schema), notice=None)
    except sqlite3.OperationalError as fault:  # full, locked, read-only: nothing says that the content is bad
        raise StateError(f"{path} cannot be opened ({fault}); see to the disk and its permissions") from fault
    except (sqlite3.DatabaseError, UnicodeDecodeError) as fault:  # the latter: names and findings that are no text
        reason = str(fault)
    aside = _set_aside(path)
    _make_private(path)
    notice = f"{path} was damaged ({reason}); it was set aside as {aside.name} and a new, empty one was begun"
    return Opened(connection=_open_sound(path, schema), notice=notice)


def _make_private(path: Path) -> None:
    """See to it that the file exists, is a regular file of ours and readable by nobody else."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as fault:
        raise StateError(f"{path} cannot be opened: {fault.strerror}") from fault
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise StateError(f"{path} is not a regular file; move it away")
        if status.st_uid != os.geteuid():
            raise StateError(
                f"{path} belongs to user {status.st_uid}; give it to the user who runs this, or move it away"
            )
        if stat.S_IMODE(status.st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _open_sound(path: Path, schema: Schema) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        version = _recognise(connection, path, schema)
        if path.stat().st_size <= CHECKED_BYTES:
            _check(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if version < schema.version:
            _migrate(connection, path, schema, version)
    except BaseException:
        connection.close()
        raise
    return connection


def _recognise(connection: sqlite3.Connection, path: Path, schema: Schema) -> int:
    """The version of the file: 0 for an empty one. Raises StateError where it is not ours to write."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if tables and application != schema.application_id:
        raise StateError(f"{path} is a database of another program; move it away")
    if version > schema.version:
        raise StateError(
            f"{path} was written by a newer telegram_bus (schema {version}, this one knows {schema.version}); "
            f"update telegram_bus, or move the file away to begin anew"
        )
    return version


def _check(connection: sqlite3.Connection) -> None:
    [verdict] = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(str(verdict))


def _migrate(connection: sqlite3.Connection, path: Path, schema: Schema, version: int) -> None:
    """Bring the file to the schema's version in one transaction; an older one is copied first."""
    if version:
        _copy_aside(connection, path, version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in schema.steps[version:]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {schema.application_id}")
        connection.execute(f"PRAGMA user_version = {schema.version}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _copy_aside(connection: sqlite3.Connection, path: Path, version: int) -> None:
    copy = _free_name(path, f"version-{version}")
    _make_private(copy)
    with_copy = sqlite3.connect(copy, isolation_level=None)
    try:
        connection.backup(with_copy)
    finally:
        with_copy.close()


def _set_aside(path: Path) -> Path:
    """Rename the file and what SQLite keeps beside it; returns the new name."""
    aside = _free_name(path, "damaged")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    return aside


def _free_name(path: Path, why: str) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    name = path.with_name(f"{path.name}.{why}-{stamp}")
    count = 1
    while name.exists():
        count += 1
        name = path.with_name(f"{path.name}.{why}-{stamp}-{count}")
    return name
