"""What each operating system does in its own way: process identity and death, peer credentials, limits.

Linux is what we run on; macOS is written by its own calls, and tested with fakes only.
"""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Darwin",
    "Host",
    "Linux",
    "ProcessHandle",
    "ProcessState",
    "boot_id",
    "file_system",
    "is_stopped",
    "lock_holder",
    "open_process",
    "peer_credentials",
    "pid_namespace",
    "process_birth_id",
    "process_state",
    "process_uid",
    "raise_descriptor_limit",
]

ProcessState = Literal["alive", "dead", "unverifiable"]

DARWIN_OPEN_MAX = 10240  # macOS calls its hard limit infinite, and refuses to set more than OPEN_MAX
# <sys/un.h> of macOS, which Python's socket module does not name
SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID = 0, 0x001, 0x002
XUCRED_SIZE = 76  # struct xucred: version, uid, number of groups (and padding), 16 groups
SO_PEERCRED = 17  # <asm-generic/socket.h>; Python's name for it exists on Linux only


class SocketOptions(Protocol):
    """A socket, the standard library's or Trio's, as far as it is needed here."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


class ProcessHandle(Protocol):
    """One exact process, which a process that gets its number later cannot stand in for."""

    pid: int

    def signal(self, number: int) -> None:
        """Send a signal; raises ProcessLookupError when the process is gone."""

    def close(self) -> None: ...


class Host(Protocol):
    """What an operating system has to answer."""

    def birth_id(self, pid: int) -> str | None:
        """`processBirthId` of protocol section 8, or None where there is no such process to be seen."""

    def is_zombie(self, pid: int) -> bool: ...

    def is_stopped(self, pid: int) -> bool: ...

    def lock_holder(self, path: Path) -> int | None: ...

    def uid(self, pid: int) -> int | None: ...

    def boot_id(self) -> str: ...

    def pid_namespace(self) -> int: ...

    def file_system(self, descriptor: int) -> str | None: ...

    def open_process(self, pid: int) -> ProcessHandle: ...

    def peer_credentials(self, sock: SocketOptions) -> tuple[int, int]: ...


class Linux:
    """Linux, by /proc, pidfd and SO_PEERCRED."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def birth_id(self, pid: int) -> str | None:
        fields = self._fields(pid)
        return f"{pid}:start:{fields[22 - 3].decode()}" if fields else None

    def is_zombie(self, pid: int) -> bool:
        fields = self._fields(pid)
        return bool(fields) and fields[0] in {b"Z", b"X", b"x"}

    def is_stopped(self, pid: int) -> bool:
        fields = self._fields(pid)
        return bool(fields) and fields[0] in {b"T", b"t"}

    def lock_holder(self, path: Path) -> int | None:
        try:
            file = path.lstat()
            lines = (self._proc / "locks").read_text().splitlines()
        except OSError:
            return None
        there = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
        for line in lines:
            fields = line.split()  # number, kind, ADVISORY, WRITE, pid, major:minor:inode (hex, hex, decimal), …
            if fields[1] == "FLOCK" and fields[5] == there and int(fields[4]) > 0:  # else of another PID namespace
                return int(fields[4])  # of who waits for a lock, the second field is an arrow
        return None

    def uid(self, pid: int) -> int | None:
        with suppress(OSError), (self._proc / str(pid) / "status").open(errors="surrogateescape") as lines:
            for line in lines:
                if line.startswith("Uid:"):
                    return int(line.split()[1])  # the real one; the owner of /proc/<pid> is not always
        return None

    def _fields(self, pid: int) -> list[bytes]:
        """The fields of /proc/<pid>/stat from the third one on, none where there is no such process."""
        try:
            text = (self._proc / str(pid) / "stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # the latter: it ended between open and read
            return []
        # the name, field 2, stands in parentheses and may hold blanks and parentheses itself
        return text[text.rindex(b")") + 1 :].split()

    def boot_id(self) -> str:
        return (self._proc / "sys/kernel/random/boot_id").read_text().strip()

    def pid_namespace(self) -> int:
        return (self._proc / "self/ns/pid").stat().st_ino

    def file_system(self, descriptor: int) -> str | None:
        device = os.fstat(descriptor).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        with suppress(OSError), (self._proc / "self/mountinfo").open(errors="surrogateescape") as mounts:
            for line in mounts:
                fields = line.split()  # id, parent, major:minor, …, "-", type, source, options
                if fields[2] == number:
                    return fields[fields.index("-") + 1]
        return None

    def open_process(self, pid: int) -> ProcessHandle:
        return _PidFd(pid)

    def peer_credentials(self, sock: SocketOptions) -> tuple[int, int]:
        pid, uid, _ = struct.unpack("=iII", sock.getsockopt(1, SO_PEERCRED, 12))  # level SOL_SOCKET
        return int(pid), int(uid)


class Darwin:
    """macOS, by ps, sysctl and the LOCAL_PEER options; written for it, not run on it."""

    def __init__(self, run: Callable[..., str | None] | None = None) -> None:
        self._run = run or _output

    def birth_id(self, pid: int) -> str | None:
        started = (self._run("ps", "-o", "lstart=", "-p", str(pid)) or "").strip()
        return f"{pid}:start:{hashlib.sha256(started.encode()).hexdigest()[:16]}" if started else None

    def is_zombie(self, pid: int) -> bool:
        return (self._run("ps", "-o", "state=", "-p", str(pid)) or "").strip().startswith("Z")

    def is_stopped(self, pid: int) -> bool:
        return (self._run("ps", "-o", "state=", "-p", str(pid)) or "").strip().startswith("T")

    def lock_holder(self, path: Path) -> int | None:  # noqa: ARG002
        return None  # lsof asks every process, and may hang

    def uid(self, pid: int) -> int | None:
        text = (self._run("ps", "-o", "ruid=", "-p", str(pid)) or "").strip()
        return int(text) if text.isdecimal() else None

    def boot_id(self) -> str:
        return (self._run("sysctl", "-n", "kern.bootsessionuuid") or "").strip()

    def pid_namespace(self) -> int:
        return 0  # all processes are in one

    def file_system(self, descriptor: int) -> str | None:  # noqa: ARG002
        return None  # Python has no statfs; a file system without locks is noticed when it is asked for one

    def open_process(self, pid: int) -> ProcessHandle:
        return _BornProcess(pid, self.birth_id)

    def peer_credentials(self, sock: SocketOptions) -> tuple[int, int]:
        (pid,) = struct.unpack("=i", sock.getsockopt(SOL_LOCAL, LOCAL_PEERPID, 4))
        _, uid = struct.unpack_from("=II", sock.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, XUCRED_SIZE))
        return int(pid), int(uid)


class _PidFd:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)

    def signal(self, number: int) -> None:
        signal.pidfd_send_signal(self._descriptor, number)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _BornProcess:
    """A process told by its birth, which is asked before each signal: the best there is without pidfd."""

    def __init__(self, pid: int, birth_id: Callable[[int], str | None]) -> None:
        self.pid = pid
        self._birth_id = birth_id
        self._birth = birth_id(pid)
        if self._birth is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))

    def signal(self, number: int) -> None:
        if self._birth_id(self.pid) != self._birth:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        os.kill(self.pid, number)

    def close(self) -> None:
        """There is nothing to close."""


def _output(*command: str) -> str | None:
    import subprocess  # noqa: PLC0415 - 10 ms that Linux need not pay

    environment = {"PATH": "/bin:/usr/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    return done.stdout if done.returncode == 0 else None


_host: Host = Darwin() if sys.platform == "darwin" else Linux()


def process_birth_id(pid: int, host: Host = _host) -> str | None:
    """`processBirthId` of protocol section 8; None where there is no such process to be seen."""
    return host.birth_id(pid)


def process_uid(pid: int, host: Host = _host) -> int | None:
    """The real uid of a process, None where there is no such process to be seen."""
    return host.uid(pid)


def process_state(pid: int, birth: str | None, host: Host = _host) -> ProcessState:
    """Whether the process that had this pid and birth id in our PID namespace lives; a zombie is dead.

    "dead" is proven; whatever cannot be proven is "unverifiable", as in protocol section 8.
    """
    if pid <= 0:
        return "unverifiable"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "dead"
    except (PermissionError, OverflowError):
        pass  # somebody else's lives under that number, or it is no number of a process
    current = host.birth_id(pid)
    if current is None or birth is None or ":start:" not in birth:
        return "unverifiable"  # /proc may hide other people's processes
    return "dead" if current != birth or host.is_zombie(pid) else "alive"


def is_stopped(pid: int, host: Host = _host) -> bool:
    """Whether a signal (Ctrl-Z) or a debugger holds the process up."""
    return host.is_stopped(pid)


def lock_holder(path: Path, host: Host = _host) -> int | None:
    """The process that the kernel names as the one that has a `flock` on the file; None where nothing tells."""
    return host.lock_holder(path)


def boot_id(host: Host = _host) -> str:
    """What is different after each boot of this machine; pids and start ticks repeat then."""
    return host.boot_id()


def pid_namespace(host: Host = _host) -> int:
    """The inode of our PID namespace (0 where there is only one): pids mean something only within it."""
    return host.pid_namespace()


def file_system(descriptor: int, host: Host = _host) -> str | None:
    """The type of the file system that an open file lies on ("ext4", "nfs4"), or None where nothing tells."""
    return host.file_system(descriptor)


def open_process(pid: int, host: Host = _host) -> ProcessHandle:
    """A handle on a process, by which it can be signalled without hitting another; close it after use.

    Raises ProcessLookupError where there is none, another OSError where the system has no such handles.
    """
    return host.open_process(pid)


def peer_credentials(sock: SocketOptions, host: Host = _host) -> tuple[int, int]:
    """Pid and uid of the process that connected a Unix socket; the pid is 0 across PID namespaces."""
    return host.peer_credentials(sock)


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, and return what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DARWIN_OPEN_MAX if sys.platform == "darwin" and hard == resource.RLIM_INFINITY else hard
    if soft != wanted:
        with suppress(ValueError, OSError):  # a sandbox may forbid it; the old limit then stands
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
