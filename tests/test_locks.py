"""A file lock has one holder, ends with it, and notices when its file is no longer the one at its path."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from telegram_bus import host
from telegram_bus.core.errors import StateError
from telegram_bus.locks import FileLock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "the.lock"


def take(path: Path) -> FileLock:
    lock = FileLock.try_lock(path)
    assert lock is not None
    return lock


def test_a_lock_has_one_holder_until_it_is_closed(path: Path) -> None:
    lock = take(path)
    assert FileLock.try_lock(path) is None
    lock.close()
    lock.close()
    with take(path):
        assert FileLock.try_lock(path) is None
    take(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_that_was_not_had_leaves_no_descriptor(path: Path) -> None:
    with take(path):
        before = set(Path("/proc/self/fd").iterdir())
        assert FileLock.try_lock(path) is None
        assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_lock_notices_that_its_file_was_removed_or_replaced(path: Path) -> None:
    with take(path) as lock:
        assert lock.is_intact()
        path.unlink()
        assert not lock.is_intact()
        path.touch()
        assert not lock.is_intact()


def test_a_symlink_to_the_locked_file_is_not_the_locked_file(path: Path) -> None:
    with take(path) as lock:
        path.rename(path.with_name("moved"))
        path.symlink_to("moved")
        assert not lock.is_intact()
    with pytest.raises(StateError, match="cannot open the lock file"):
        FileLock.try_lock(path)


def test_touching_renews_the_times_of_the_file(path: Path) -> None:
    with take(path) as lock:
        os.utime(path, ns=(0, 0))
        lock.touch()
        assert path.stat().st_mtime_ns > 0


def test_a_note_replaces_the_one_before(path: Path) -> None:
    with take(path) as lock:
        lock.write_note("a long note")
        lock.write_note("short")
        assert path.read_text() == "short"


def test_a_killed_holder_holds_nothing_though_a_forked_child_lives_on(path: Path) -> None:
    code = (
        "import os, sys, signal, pathlib\n"
        "from telegram_bus.locks import FileLock\n"
        "lock = FileLock.try_lock(pathlib.Path(sys.argv[1]))\n"
        "if os.fork() == 0:\n"
        "    print(os.getpid(), flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            assert FileLock.try_lock(path) is None
            holder.kill()
            holder.wait()
            assert host.process_birth_id(child) is not None
            take(path).close()
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_missing_directory_is_named(path: Path) -> None:
    with pytest.raises(StateError, match="No such file"):
        FileLock.try_lock(path / "below")


def test_what_cannot_be_locked_is_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(host, "file_system", lambda _: "nfs4")
    with pytest.raises(StateError, match=r"nfs4.*local disk"):
        FileLock.try_lock(path)
    monkeypatch.undo()
    take(path).close()
