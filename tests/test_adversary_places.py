"""Something else in the place of a file of the bus: nobody waits for it, and nobody ends by it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from telegram_bus.cli.asking import ask, leader_record
from telegram_bus.core.errors import NoLeader, NotSent
from telegram_bus.home import Home, Profile, mint_secret, read_regular
from telegram_bus.roles.detached import last_words, start_leader_detached
from telegram_bus.roles.record import read_leader
from telegram_bus.wire.plain import request_plain

GOOD: dict[str, Any] = {
    "version": 1, "pid": 1, "birth": "b", "bootId": "x", "pidNamespace": 1, "uid": 0, "instance": "i", "epoch": 1,
    "endpoint": "/x", "state": "leading", "since": 1.0,
    "protocol": {"protocolVersion": 1, "runtimeBuild": "b", "capabilities": []},
}  # fmt: skip


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    profile = Home(tmp_path / "home").profile("default")
    profile.ensure()
    mint_secret(profile.follower_secret)
    return profile


def open_descriptors() -> int:
    """How many this process has, where the system tells."""
    here = Path("/proc/self/fd")
    return sum(1 for _ in here.iterdir()) if here.exists() else 0


def bind(path: Path) -> None:
    """A socket at a path that may be longer than a socket's address."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        socket.socket(socket.AF_UNIX).bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


PLACES: list[Callable[[Path], object]] = [
    os.mkfifo,
    Path.mkdir,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to(path),
    lambda path: path.symlink_to("/proc/self/mem"),
    bind,
]


IDS = ["fifo", "directory", "endless", "itself", "memory", "socket"]


@pytest.mark.parametrize("put", PLACES, ids=IDS)
@pytest.mark.filterwarnings("ignore:unclosed <socket")
def test_what_is_no_file_is_no_record_of_a_leader(profile: Profile, put: Callable[[Path], object]) -> None:
    put(profile.leader_json)
    before = open_descriptors()
    assert read_leader(profile) is None
    assert leader_record(profile) is None
    with pytest.raises(NoLeader):
        ask(profile, "x.status.get", profile.follower_secret)
    assert open_descriptors() <= before


def test_a_record_that_a_leader_writes_is_read(profile: Profile) -> None:
    profile.leader_json.write_text(json.dumps(GOOD))
    record = read_leader(profile)
    assert record is not None
    assert record.endpoint == "/x"


@pytest.mark.parametrize(
    "odd",
    [
        {"endpoint": "\0x"}, {"endpoint": "/x\0"}, {"endpoint": "/\ud800"}, {"endpoint": "relative"}, {"endpoint": ""},
        {"since": 10**400}, {"pid": 2**63}, {"epoch": 10**30}, {"uid": -(2**70)}, {"pid": True}, {"pid": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_that_no_leader_writes_counts_as_none(profile: Profile, odd: dict[str, Any]) -> None:
    """Some of these ended whoever looked for a leader; a path that begins with NUL is nobody's directory."""
    profile.leader_json.write_text(json.dumps(GOOD | odd))
    assert read_leader(profile) is None
    with pytest.raises(NoLeader):
        ask(profile, "x.status.get", profile.follower_secret)


@pytest.mark.parametrize("path", ["/\ud800", "/x" * 200, "/nowhere/at/all"])
def test_a_path_at_which_nobody_can_listen_is_one_at_which_nobody_does(path: str) -> None:
    with pytest.raises(NotSent, match="nobody"):
        request_plain(path, {"kind": "x.status.get", "requestId": "1"}, 1.0)


def test_only_so_much_is_read_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100)
    assert read_regular(path, 10) == b"x" * 10


# the leader's log


@pytest.mark.parametrize("put", PLACES, ids=IDS)
@pytest.mark.filterwarnings("ignore:unclosed <socket")
def test_nobody_waits_for_last_words(profile: Profile, put: Callable[[Path], object]) -> None:
    put(profile.leader_log)
    assert last_words(profile, 0).startswith("the leader that was started ended at once")


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir], ids=["fifo", "directory"])
async def test_a_leader_that_gets_no_log_is_started_all_the_same(
    profile: Profile, put: Callable[[Path], object]
) -> None:
    """Whoever started it waited for somebody to read the fifo, and nobody else could start one meanwhile."""
    put(profile.leader_log)
    with trio.fail_after(60):
        started = await start_leader_detached(profile, sys.executable)  # it has no settings, and ends
        while not started.has_exited():  # noqa: ASYNC110 - another process
            await trio.sleep(0.05)


def test_a_log_in_whose_place_there_is_a_fifo_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "leader.log"
    script = (
        "import logging, os, pathlib, sys; from telegram_bus import log; path = pathlib.Path(sys.argv[1]);"
        "log.setup(as_json=True, file=path); path.rename(path.with_name('old')); os.mkfifo(path);"
        "logging.warning('after')"
    )
    with path.open("ab") as output:
        subprocess.run([sys.executable, "-c", script, str(path)], stdout=output, stderr=output, check=True, timeout=60)
    assert json.loads((tmp_path / "old").read_text())["message"] == "after"
