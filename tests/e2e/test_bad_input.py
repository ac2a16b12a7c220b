"""Files that are not as a leader left them: each a clear error with the path and the way out, and nothing changed."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from telegram_bus.home import Home, Profile
from telegram_bus.roles.record import read_leader
from telegram_bus.store.schema import JOURNAL

TOKEN = "123456:AAAABBBBCCCCDDDD"
NOWHERE = "http://127.0.0.1:9"  # nobody answers there: whatever goes wrong has to go wrong before

LEAD = """
import sys
from telegram_bus.cli.main import main
sys.exit(main(["leader", "--api-root", sys.argv[1], "--chat", "987", *sys.argv[2:]]))
"""
FOREIGN = "import os; os.geteuid = lambda: 54321\n"
UNLOCKABLE = """
import errno, fcntl
def flock(*_): raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = flock
"""

HASTY = """
import attrs, telegram_bus.roles.leadership as leadership
times = attrs.evolve(leadership.DEFAULT_TIMES, lease=0.3, probe=0.3, farewell=0.1, patience=0.3)
leadership.hold_leadership.__wrapped__.__kwdefaults__["times"] = times
"""
HOLDER = """
import fcntl, os, sys, time
held = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""
RUBBISH = [b"", b"{", b"[]", b'{"version": 99}', b"\x00\xff" * 100, b"[" * 100_000]

Spoil = Callable[[Profile], None]


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    """A profile as a leader of bot 123456 left it."""
    profile = Home(tmp_path / "home").profile("default")
    profile.ensure()
    profile.config_toml.write_text(f'bot = 123456\ntoken = "{TOKEN}"\nchat = 987\n')
    profile.config_toml.chmod(0o600)
    return profile


def environ(profile: Profile, token: str = TOKEN) -> dict[str, str]:
    places = {"TELEGRAM_BUS_HOME": str(profile.home.root), "XDG_STATE_HOME": str(profile.home.root.parent)}
    return os.environ | places | {"TELEGRAM_BOT_TOKEN": token}


def lead(profile: Profile, *options: str, before: str = "", token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", before + LEAD, NOWHERE, *options]
    return subprocess.run(command, env=environ(profile, token), capture_output=True, text=True, timeout=60, check=False)


def everything(profile: Profile) -> dict[str, tuple[int, bytes]]:
    """Each file and directory of the home, with its mode and content; locks are nothing but files to hold on to.

    Where a database cannot be opened its leader may have held the locks.
    """
    return {
        str(path.relative_to(profile.home.root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(profile.home.root.rglob("*"))
        if path.suffix != ".lock"
    }


def newer(profile: Profile) -> None:
    with closing(sqlite3.connect(profile.database)) as database:
        database.execute("CREATE TABLE things_to_come (x)")
        database.execute(f"PRAGMA application_id = {JOURNAL.application_id}")
        database.execute(f"PRAGMA user_version = {JOURNAL.version + 1}")
    profile.database.chmod(0o600)


def damaged(profile: Profile) -> None:
    profile.config_toml.write_text("chat = = 1")


def of_another_program(profile: Profile) -> None:
    with closing(sqlite3.connect(profile.database)) as database:
        database.execute("CREATE TABLE songs (x)")
    profile.database.chmod(0o600)


BAD: list[tuple[str, Spoil, str, str, int, tuple[str, ...]]] = [
    ("somebody else's", lambda _: None, FOREIGN, TOKEN, 1, ("{home}", "belongs to user", "TELEGRAM_BUS_HOME")),
    ("world-writable", lambda p: p.directory.chmod(0o777), "", TOKEN, 1, ("{directory}", "chmod 700")),
    ("no locks", lambda _: None, UNLOCKABLE, TOKEN, 1, ("leader.lock", "TELEGRAM_BUS_HOME")),
    ("a newer database", newer, "", TOKEN, 1, ("{database}", "newer telegram_bus", "update telegram_bus")),
    ("another program's database", of_another_program, "", TOKEN, 1, ("{database}", "another program", "move it away")),
    ("another bot's token", lambda _: None, "", "999:EEEEFFFFGGGG", 2, ("123456", "999", "--other-bot", "--profile")),
    (
        "damaged settings",
        damaged,
        "",
        TOKEN,
        2,
        ("{config}", "line 1", "mend"),
    ),
    ("settings others may read", lambda p: p.config_toml.chmod(0o644), "", TOKEN, 2, ("{config}", "chmod 600")),
]


@pytest.mark.parametrize(("what", "spoil", "before", "token", "code", "words"), BAD, ids=[row[0] for row in BAD])
def test_it_is_refused_with_the_path_and_the_way_out_and_nothing_changes(
    profile: Profile, what: str, spoil: Spoil, before: str, token: str, code: int, words: tuple[str, ...]
) -> None:
    profile.stopped.touch(0o600)
    spoil(profile)
    found = everything(profile)
    ended = lead(profile, before=before, token=token)
    assert ended.returncode == code, ended.stderr
    paths = {
        "home": profile.home.root,
        "directory": profile.directory,
        "database": profile.database,
        "config": profile.config_toml,
    }
    missing = [word for word in words if word.format(**paths) not in ended.stderr]
    assert not missing, ended.stderr
    assert "Traceback" not in ended.stderr
    assert token not in ended.stderr
    assert everything(profile) == found


@pytest.mark.parametrize("way", ["leader.lock", "the bot's lock"])
@pytest.mark.parametrize("option", [[], ["--replace"]])
def test_a_lock_that_no_leader_holds_is_named_and_its_holder_left_alone(
    profile: Profile, way: str, option: list[str]
) -> None:
    bots = profile.home.root.parent / "telegram-bus" / "locks"
    bots.mkdir(parents=True, mode=0o700)
    bots.parent.chmod(0o700)
    api = hashlib.sha256(NOWHERE.encode()).hexdigest()[:8]
    path = profile.leader_lock if way == "leader.lock" else bots / f"123456-{api}.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            found = everything(profile)
            ended = lead(profile, *option, before=HASTY)
            assert holder.poll() is None
        finally:
            holder.kill()
    assert ended.returncode == 1, ended.stderr
    assert str(path) in ended.stderr
    assert f"lsof {path}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert everything(profile) == found


@pytest.mark.parametrize("command", [["status"], ["updates", "list"], ["stop"], ["logs"]], ids=" ".join)
def test_no_command_asks_or_writes_anything_in_somebody_elses_home(profile: Profile, command: list[str]) -> None:
    found = everything(profile)
    code = f"{FOREIGN}import sys\nfrom telegram_bus.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    ended = subprocess.run(
        [sys.executable, "-c", code, *command], env=environ(profile), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert f"{profile.home.root} belongs to user" in ended.stderr
    assert "TELEGRAM_BUS_HOME" in ended.stderr
    assert everything(profile) == found


@pytest.mark.parametrize("content", RUBBISH)
@pytest.mark.parametrize("command", [["status"], ["updates", "list"], ["purge"], ["logs"]], ids=" ".join)
def test_who_looks_for_a_leader_behind_rubbish_finds_none_and_changes_nothing(
    profile: Profile, command: list[str], content: bytes
) -> None:
    profile.leader_json.write_bytes(content)
    found = everything(profile)
    ended = subprocess.run(
        [sys.executable, "-m", "telegram_bus", *command],
        env=environ(profile),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert str(profile.directory) in ended.stderr
    assert "Traceback" not in ended.stderr
    assert everything(profile) == found


@pytest.mark.parametrize("content", RUBBISH)
def test_a_record_with_rubbish_counts_as_none(profile: Profile, content: bytes) -> None:
    profile.leader_json.write_bytes(content)
    assert read_leader(profile) is None
    assert profile.leader_json.read_bytes() == content
    assert stat.S_ISREG(profile.leader_json.stat().st_mode)
