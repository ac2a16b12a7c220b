"""A real program between pipes or on a pseudo-terminal, and a thread in memory."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import trio
import trio.testing

from telegram_bus.cli import wrapping
from telegram_bus.cli.program import Program, find_program, open_program
from telegram_bus.cli.wrapping import lines_of, serve_program
from telegram_bus.core.errors import ApiError, RequestRefused, SettingsError
from tests.cli.fake_thread import PATIENCE, FakeThread, Message

ENVIRON = {"PATH": os.environ["PATH"]}


def python(code: str) -> list[str]:
    return [sys.executable, "-u", "-c", code]


@asynccontextmanager
async def wrapped(
    thread: FakeThread, command: list[str], *, terminal: bool = False, errors: IO[bytes] | None = None
) -> AsyncIterator[tuple[Program, list[int]]]:
    """The program at work beside the block; its end is waited for, and its status stands in the list then."""
    statuses: list[int] = []

    async def serve(program: Program) -> None:
        statuses.append(await serve_program(thread, program, "it"))

    with trio.fail_after(PATIENCE):
        async with (
            open_program(command, environ=ENVIRON, terminal=terminal, errors=errors) as program,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(serve, program)
            yield program, statuses


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_message_is_a_line_on_stdin_and_output_is_a_message(terminal: bool) -> None:
    thread = FakeThread()
    command = ["sh", "-c", 'while read -r line; do [ "$line" = end ] && exit 0; echo "got $line"; done']
    async with wrapped(thread, command, terminal=terminal) as (_, statuses):
        message = thread.write("hello  there")
        await thread.until(lambda sent: sent == ["got hello  there"])
        assert message.finished.is_set()
        thread.write("one\ntwo\r\nthree")
        await thread.until(lambda sent: len(sent) == 2)
        thread.write("end")
    assert thread.sent[1:] == ["got one\ngot two\ngot three", "it ended with exit status 0."]
    assert statuses == [0]


@pytest.mark.parametrize(
    ("command", "words"),
    [("exit 3", "it ended with exit status 3."), ("kill -9 $$", "it was ended by SIGKILL (signal 9).")],
)
async def test_the_end_is_told_after_all_output(command: str, words: str) -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", f"printf last; {command}"]):
        pass
    assert thread.sent == ["last", words]


async def test_control_sequences_and_broken_utf8_do_not_reach_the_thread() -> None:
    thread = FakeThread()
    code = r"import os; os.write(1, b'\x1b[31mr\xc3'); os.write(1, b'\xb6d\x1b[0m \xff')"
    async with wrapped(thread, python(code)):
        pass
    assert thread.sent[0] == "röd \N{REPLACEMENT CHARACTER}"


async def test_a_pause_ends_a_message_though_the_line_is_not_finished() -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", "printf 'name? '; read -r name; echo hello $name"]):
        await thread.until(lambda sent: sent == ["name?"])
        thread.write("Ada")
    assert thread.sent == ["name?", "hello Ada", "it ended with exit status 0."]


async def test_a_flood_stops_the_program_and_arrives_whole_and_in_order() -> None:
    thread = FakeThread()
    thread.gate = trio.Event()
    marker = 40_000
    code = f"import sys\nfor n in range({marker}): print(n)\nprint('all', file=sys.stderr)"
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with os.fdopen(writer, "wb") as errors:
        async with wrapped(thread, python(code.replace("print(n)", "sys.stdout.write(f'{n}\\n')")), errors=errors) as (
            program,
            _,
        ):
            # nothing is read while the first message cannot be sent, so the program cannot come to its end
            await trio.testing.wait_all_tasks_blocked(0.2)
            assert program.alive
            with pytest.raises(BlockingIOError):
                os.read(reader, 1)
            thread.gate.set()
    os.close(reader)
    assert thread.sent[-1] == "it ended with exit status 0."
    assert "\n".join(thread.sent[:-1]).split() == [str(number) for number in range(marker)]
    assert max(map(len, thread.sent)) <= 3_500


async def test_a_message_for_a_program_that_closed_stdin_is_not_done() -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", "exec 0<&-; echo deaf; exec sleep 60"]) as (program, statuses):
        await thread.until(lambda sent: sent == ["deaf"])
        lost = thread.write("are you there?")
        await thread.until(lambda sent: len(sent) == 2)
        later = thread.write("hello?")
        assert program.alive
        os.kill(program.process.pid, signal.SIGTERM)
    assert thread.sent[1] == "it reads no more; messages wait for its next start."
    assert not lost.finished.is_set()
    assert not later.finished.is_set()
    assert statuses == [-signal.SIGTERM]


@pytest.mark.parametrize("status", range(5))
async def test_a_message_that_was_read_is_done_though_the_program_ended_at_once(status: int) -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", f"read -r line; exit {status}"]) as (_, statuses):
        message = thread.write("last order")
    assert message.finished.is_set()
    assert statuses == [status]


async def test_a_message_that_comes_while_the_program_ends_is_not_done() -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", "exit 0"]) as (program, _):
        await program.wait()
        message = thread.write("too late")
    assert not message.finished.is_set()


async def test_the_output_that_others_of_the_program_hold_open_does_not_keep_it() -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", "sleep 600 & echo $!; exit 4"]) as (_, statuses):
        pass
    child = int(thread.sent[0])
    assert statuses == [4]
    assert not running(child)


async def test_ending_takes_the_whole_process_group_though_it_ignores_the_polite_signal() -> None:
    thread = FakeThread()
    stubborn = "trap '' TERM; sleep 600 & echo $!; wait; wait; sleep 600"
    async with wrapped(thread, ["sh", "-c", stubborn]) as (program, statuses):
        await thread.until(lambda sent: len(sent) == 1)
        await program.end(grace=0.1)
    assert statuses == [-signal.SIGKILL]
    assert not running(int(thread.sent[0]))


async def test_last_words_after_the_polite_signal_are_sent() -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo ready; read -r line"]) as (program, _):
        await thread.until(lambda sent: sent == ["ready"])
        await program.end(grace=PATIENCE)
    assert thread.sent == ["ready", "bye", "it ended with exit status 0."]


async def test_a_refused_message_is_told_and_the_rest_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    thread = FakeThread(fault=RequestRefused("message thread not found"))
    async with wrapped(thread, ["sh", "-c", "echo first; read -r line; echo second"]):
        await thread.refused.wait()
        thread.write("go on")
    assert thread.sent == ["second", "it ended with exit status 0."]
    assert "message thread not found" in capsys.readouterr().err


async def test_what_a_program_says_while_a_message_is_being_sent_is_sent_though_it_ends_meanwhile() -> None:
    thread = FakeThread()
    thread.gate = trio.Event()
    async with wrapped(thread, ["sh", "-c", "echo first; read -r line; echo second"]) as (program, _):
        await thread.asked.wait()
        thread.write("go on")
        await program.wait()
        await trio.testing.wait_all_tasks_blocked()
        thread.gate.set()
    assert thread.sent == ["first", "second", "it ended with exit status 0."]


async def test_the_message_that_finds_its_thread_deleted_is_sent_into_the_next_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wrapping, "_NEW_THREAD", (0.01, 0.01))
    thread = FakeThread(fault=ApiError("sendMessage", 400, "Bad Request: message thread not found"))
    async with wrapped(thread, ["sh", "-c", "echo first; read -r line; echo second"]):
        await thread.refused.wait()
        thread.write("go on")
    assert thread.sent == ["first", "second", "it ended with exit status 0."]
    assert capsys.readouterr().err == ""


async def test_a_thread_that_stays_away_does_not_hold_up_a_program_for_ever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wrapping, "_NEW_THREAD", (0.01, 0.01))
    thread = Deleted()
    async with wrapped(thread, ["sh", "-c", "printf first"]):
        pass
    assert thread.tries == ["first"] * 3 + ["it ended with exit status 0."] * 3
    assert "5 characters may not have arrived" in capsys.readouterr().err


class Deleted(FakeThread):
    """A thread that a person has deleted, and that nobody makes anew."""

    def __init__(self) -> None:
        super().__init__()
        self.tries: list[str] = []

    async def send(self, text: str, /) -> None:
        await trio.lowlevel.checkpoint()
        self.tries.append(text)
        raise ApiError("sendMessage", 400, "Bad Request: message thread not found")


async def test_a_terminal_is_one_takes_long_lines_and_does_not_echo() -> None:
    thread = FakeThread()
    code = "import os,sys\nprint(os.isatty(0), os.isatty(1), os.ttyname(0) != '', open('/dev/tty').isatty())\n"
    code += "line = sys.stdin.readline()\nprint(len(line))"
    async with wrapped(thread, python(code), terminal=True):
        await thread.until(lambda sent: sent == ["True True True True"])
        thread.write("x" * 10_000)
    assert thread.sent[1] == "10001"


async def test_stderr_goes_to_the_log_and_not_into_the_thread(tmp_path: Path) -> None:
    thread = FakeThread()
    with (tmp_path / "log").open("wb") as log:
        async with wrapped(thread, ["sh", "-c", "echo secretly >&2; echo openly"], errors=log):
            pass
    assert thread.sent[0] == "openly"
    assert (tmp_path / "log").read_text() == "secretly\n"


def test_a_program_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such program"):
        find_program(["surely-no-such-program"], ENVIRON)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(SettingsError, match="not executable"):
        find_program([str(tmp_path / "text")], ENVIRON)


async def test_what_the_system_cannot_execute_is_a_usage_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/surely/no/interpreter\n")
    broken.chmod(0o700)
    with pytest.raises(SettingsError, match="cannot run"):
        async with open_program([str(broken)], environ=ENVIRON, terminal=False, errors=None):
            pass


@pytest.mark.parametrize(
    ("update", "lines"),
    [
        (Message("text"), "text\n"),
        (Message("two\nlines\n"), "two\nlines\n"),
        (Message("caption", message={"photo": [{}], "caption": "caption"}), "[photo] caption\n"),
        (Message("", message={"voice": {}}), "[voice]\n"),
        (
            Message("look", message={"photo": [{}]}, more=({"video": {}}, {"photo": [{}]})),
            "[photo] [video] [photo] look\n",
        ),
        (Message("see\n\nnews", message={"text": "see"}, more=({"text": "news"},)), "see\n\nnews\n"),
        (Message("", message={"forum_topic_edited": {}}), ""),
        (Message("text", kind="edited_message"), ""),
        (Message("", kind="reaction"), ""),
        (Message("the message with the button", kind="callback"), ""),
    ],
)
def test_only_new_messages_are_lines(update: Message, lines: str) -> None:
    assert lines_of(update) == lines


async def test_what_is_no_line_is_done_without_the_program_noticing() -> None:
    thread = FakeThread()
    async with wrapped(thread, ["sh", "-c", "read -r line; echo $line"]):
        reaction: Any = thread.write("", kind="reaction")
        await reaction.finished.wait()
        thread.write("real")
    assert thread.sent[0] == "real"


def running(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
