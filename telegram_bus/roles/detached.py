"""Starting a leader that outlives whoever starts it: an orphan in a session of its own, its output in leader.log."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import trio
from attrs import frozen

from telegram_bus import host
from telegram_bus.core.errors import NoLeader
from telegram_bus.home import HOME_VARIABLE, Profile
from telegram_bus.log import set_aside

__all__ = ["StartedLeader", "last_words", "start_leader_detached"]

log = logging.getLogger(__name__)

LOG_TAIL: Final = 16_384

# Runs in a small interpreter of its own: forking this process would copy its threads' locks and its event loop.
# The leader becomes an orphan that leads no session, so it can never get a terminal, and no child of ours to wait for.
DETACH: Final = """
import os, signal, stat, sys
log, *command = sys.argv[1:]
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
os.chdir("/")
os.umask(0o077)
pid = os.fork()
if pid:
    print(pid)
else:
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
        regular = stat.S_ISREG(os.fstat(out).st_mode)
    except OSError:
        regular = False
    if not regular:  # a leader without a log is better than none, and than one that waits for a fifo's reader
        out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.execv(command[0], command)
"""


@frozen
class StartedLeader:
    """A process that was started as a leader; `log_offset` is where its output begins in leader.log."""

    pid: int
    birth: str | None
    log_offset: int

    def has_exited(self) -> bool:
        return host.process_state(self.pid, self.birth) == "dead"


async def start_leader_detached(
    profile: Profile, interpreter: str, environment: Mapping[str, str] | None = None, *, spare: bool = False
) -> StartedLeader:
    """Start `<interpreter> -P -m telegram_bus leader --profile NAME --detached`, and do not wait whether it works.

    As a `spare` it waits until the leader that runs has died.
    It gets none of our options: what it serves stands in config.toml. Raises NoLeader where the interpreter is none.
    """
    profile.ensure()
    set_aside(profile.leader_log)
    offset = 0
    with suppress(FileNotFoundError):
        offset = profile.leader_log.stat().st_size
    leader = ["-P", "-m", "telegram_bus", "leader", "--profile", profile.name, "--detached"]
    if spare:
        leader.append("--spare")
    command = [interpreter, "-I", "-S", "-c", DETACH, str(profile.leader_log), interpreter, *leader]
    try:
        done = await trio.run_process(
            command,
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
            start_new_session=True,
            check=False,
            env=_leader_environment(profile, os.environ if environment is None else environment),
        )
        pid = int(done.stdout)
    except (OSError, ValueError) as error:
        raise NoLeader(f"the interpreter {interpreter} of config.toml starts nothing: {error}") from error
    log.info(
        "started a spare leader of profile %s, process %d" if spare else "started a leader of profile %s, process %d",
        profile.name,
        pid,
    )
    return StartedLeader(pid, host.process_birth_id(pid), offset)


def _leader_environment(profile: Profile, environment: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what could decide which bot the leader serves, and how it gets to Telegram."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("TELEGRAM_BOT_", "TELEGRAM_BUS_"))
        and name.lower() not in {"http_proxy", "https_proxy", "all_proxy"}
    }
    return kept | {HOME_VARIABLE: str(profile.home.root)}


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file, also one in whose place there is a fifo that nobody writes to."""
    return os.open(path, flags | os.O_NONBLOCK)


def last_words(profile: Profile, offset: int) -> str:
    """Why a leader ended, by its last line in the log after `offset`."""
    lines: list[bytes] = []
    with suppress(OSError), open(profile.leader_log, "rb", opener=_without_waiting) as file:
        file.seek(max(offset, os.fstat(file.fileno()).st_size - LOG_TAIL))
        lines = [line for line in file.read(LOG_TAIL).splitlines() if line.strip()]
    if not lines:
        return f"the leader that was started ended at once and said nothing; look into {profile.leader_log}"
    # a fault that the command line reports may have several lines, of which the first one says what it is
    said = [line for line in lines if line.startswith(b"telegram-bus:")]
    text = (said or lines)[-1].decode(errors="replace").strip().removeprefix("telegram-bus: ")
    with suppress(ValueError):
        entry: Any = json.loads(text)
        if isinstance(entry, dict) and isinstance(entry.get("message"), str):
            text = entry["message"]
    return f"the leader that was started ended at once: {text[:500]}"
