"""Process identity, death and peers: on the real Linux, and on a macOS of made-up answers."""

from __future__ import annotations

import fcntl
import hashlib
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from telegram_bus import host
from telegram_bus.host import Darwin, Linux

SLEEPER = [sys.executable, "-S", "-c", "print(flush=True); import signal; signal.pause()"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEPER, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_the_birth_id_is_pid_and_start_ticks() -> None:
    pid = os.getpid()
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert host.process_birth_id(pid) == f"{pid}:start:{ticks}"


def test_a_name_with_blanks_and_parentheses_does_not_shift_the_fields(tmp_path: Path) -> None:
    directory = tmp_path / "7"
    directory.mkdir()
    numbers = " ".join(str(number) for number in range(4, 53))
    (directory / "stat").write_text(f"7 (a ) S (b) R {numbers}\n")
    assert Linux(tmp_path).birth_id(7) == "7:start:22"


def test_a_process_lives_until_it_ends_and_a_zombie_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    birth = host.process_birth_id(sleeper.pid)
    assert host.process_state(sleeper.pid, birth) == "alive"
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays a zombie
    assert host.process_state(sleeper.pid, birth) == "dead"
    sleeper.wait()
    assert host.process_state(sleeper.pid, birth) == "dead"
    assert host.process_birth_id(sleeper.pid) is None
    assert host.process_uid(sleeper.pid) is None


def test_a_process_that_is_stopped_is_told_from_one_that_waits(sleeper: subprocess.Popen[bytes]) -> None:
    assert not host.is_stopped(sleeper.pid)
    sleeper.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED)
    assert host.is_stopped(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert not host.is_stopped(sleeper.pid)


def test_the_kernel_names_who_has_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert host.lock_holder(path) is None
    with path.open("w") as file:
        assert host.lock_holder(path) is None
        fcntl.flock(file, fcntl.LOCK_EX)
        assert host.lock_holder(path) == os.getpid()
    assert host.lock_holder(path) is None


def test_who_waits_for_a_lock_or_is_of_another_namespace_does_not_have_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    file = path.stat()
    there = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    locks = tmp_path / "locks"
    locks.write_text(
        f"1: POSIX  ADVISORY  WRITE 5 {there} 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 6 {there} 0 EOF\n"
        f"2: FLOCK  ADVISORY  WRITE 0 {there} 0 EOF\n3: FLOCK  ADVISORY  WRITE 8 {there}1 0 EOF\n"
    )
    assert Linux(tmp_path).lock_holder(path) is None
    locks.write_text(locks.read_text() + f"4: FLOCK  ADVISORY  WRITE 9 {there} 0 EOF\n")
    assert Linux(tmp_path).lock_holder(path) == 9


def test_another_birth_under_the_same_pid_is_a_death() -> None:
    assert host.process_state(os.getpid(), f"{os.getpid()}:start:1") == "dead"


@pytest.mark.parametrize("birth", [None, "5:generation:abc"])
def test_what_cannot_be_compared_is_not_dead(birth: str | None) -> None:
    assert host.process_state(os.getpid(), birth) == "unverifiable"


@pytest.mark.parametrize("pid", [0, -1, 2**40])
def test_a_number_that_is_no_pid_is_not_dead(pid: int) -> None:
    assert host.process_state(pid, f"{pid}:start:1") == "unverifiable"


def test_a_process_that_proc_hides_is_not_dead(tmp_path: Path) -> None:
    assert host.process_state(os.getpid(), f"{os.getpid()}:start:1", Linux(tmp_path)) == "unverifiable"


def test_boot_and_namespace_are_the_same_each_time() -> None:
    assert host.boot_id() == host.boot_id() != ""
    assert host.pid_namespace() == host.pid_namespace() > 0


def test_the_uid_of_a_process_is_its_owners() -> None:
    assert host.process_uid(os.getpid()) == os.getuid()


def test_a_handle_signals_its_process_and_then_nobody(sleeper: subprocess.Popen[bytes]) -> None:
    with closing(host.open_process(sleeper.pid)) as handle:
        handle.signal(signal.SIGTERM)
        assert sleeper.wait() == -signal.SIGTERM
        with pytest.raises(ProcessLookupError):
            handle.signal(signal.SIGTERM)


def test_there_is_no_handle_on_a_process_that_has_ended(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(ProcessLookupError):
        host.open_process(sleeper.pid)


def test_the_peer_of_a_socket_is_known_by_pid_and_uid() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert host.peer_credentials(ours) == (os.getpid(), os.getuid())


def test_the_file_system_of_a_file_is_told_by_the_mount_table(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        device = os.fstat(file.fileno()).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        (tmp_path / "self").mkdir()
        (tmp_path / "self" / "mountinfo").write_text(
            "1 0 999:1 / / rw shared:1 - ext4 /dev/a rw\n"
            f"2 1 {number} / /home rw shared:2 master:3 - nfs4 server:/ rw\n"
        )
        assert Linux(tmp_path).file_system(file.fileno()) == "nfs4"
        assert Linux(tmp_path / "none").file_system(file.fileno()) is None


def test_the_limit_of_descriptors_becomes_the_hard_one() -> None:
    code = (
        "import resource; from telegram_bus import host; "
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)); "
        "print(host.raise_descriptor_limit())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == resource.getrlimit(resource.RLIMIT_NOFILE)[1]


class Answers:
    """What the commands of a made-up macOS print."""

    def __init__(self) -> None:
        self.processes = {os.getpid(): ("S+", "Mon Dec  1 09:00:00 2025", "501")}

    def __call__(self, *command: str) -> str | None:
        match command:
            case ["sysctl", "-n", "kern.bootsessionuuid"]:
                return "8F1C0000-AAAA\n"
            case ["ps", "-o", column, "-p", pid] if int(pid) in self.processes:
                state, started, uid = self.processes[int(pid)]
                return {"state=": state, "lstart=": f"{started}    ", "ruid=": f"  {uid}"}[column] + "\n"
        return None


def test_macos_tells_births_by_a_hash_of_the_start_time() -> None:
    mac = Darwin(Answers())
    digest = hashlib.sha256(b"Mon Dec  1 09:00:00 2025").hexdigest()[:16]
    birth = f"{os.getpid()}:start:{digest}"
    assert host.process_birth_id(os.getpid(), mac) == birth
    assert host.process_state(os.getpid(), birth, mac) == "alive"
    assert host.process_uid(os.getpid(), mac) == 501
    assert host.process_birth_id(2**22 + 1, mac) is None
    assert (host.boot_id(mac), host.pid_namespace(mac)) == ("8F1C0000-AAAA", 0)


def test_macos_takes_a_zombie_for_dead() -> None:
    answers = Answers()
    mac = Darwin(answers)
    birth = mac.birth_id(os.getpid())
    answers.processes[os.getpid()] = ("Z", *answers.processes[os.getpid()][1:])
    assert host.process_state(os.getpid(), birth, mac) == "dead"


def test_macos_knows_who_is_stopped_and_not_who_has_a_lock(tmp_path: Path) -> None:
    answers = Answers()
    mac = Darwin(answers)
    assert not host.is_stopped(os.getpid(), mac)
    answers.processes[os.getpid()] = ("T+", *answers.processes[os.getpid()][1:])
    assert host.is_stopped(os.getpid(), mac)
    assert host.lock_holder(tmp_path, mac) is None


def test_macos_signals_only_the_process_that_was_opened() -> None:
    answers = Answers()
    handle = host.open_process(os.getpid(), Darwin(answers))
    handle.signal(0)
    answers.processes[os.getpid()] = ("S", "Mon Dec  1 10:00:00 2025", "501")
    with pytest.raises(ProcessLookupError):
        handle.signal(0)
    handle.close()
    with pytest.raises(ProcessLookupError):
        host.open_process(2**22 + 1, Darwin(answers))


class DarwinSocket:
    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
        answers = {(0, 2, 4): struct.pack("=i", 77), (0, 1, 76): struct.pack("=IIh", 0, 501, 1).ljust(76, b"\0")}
        return answers[level, optname, buflen]


def test_macos_knows_peers_by_the_local_peer_options() -> None:
    assert host.peer_credentials(DarwinSocket(), Darwin(Answers())) == (77, 501)
