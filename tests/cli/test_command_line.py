"""How commands are found, what their options mean, and which exit codes faults have."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from telegram_bus._version import __version__
from telegram_bus.cli import faults
from telegram_bus.cli import main as command_line
from telegram_bus.core.errors import (
    ApiError,
    BusError,
    CommitUnknown,
    NoLeader,
    RequestRefused,
    SettingsError,
    StateError,
)

HEAVY = ("trio", "telegram", "rich", "attrs", "cattrs", "orjson", "httpx", "sqlite3", "asyncio", "platformdirs")


def bus(*arguments: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TELEGRAM_")}
    return subprocess.run(
        [sys.executable, "-m", "telegram_bus", *arguments],
        env=environ | {"TELEGRAM_BUS_HOME": str(home), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), 2),
        (NoLeader("x"), 3),
        (RequestRefused("x"), 4),
        (TimeoutError("x"), 5),
        (trio.TooSlowError(), 5),
        (StateError("x"), 1),
        (CommitUnknown("x"), 1),
        (ApiError("getMe", 401, "Unauthorized"), 1),
        (BusError("x"), 1),
        (PermissionError(13, "Permission denied", "/file"), 1),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError(), None),
    ],
)
def test_each_fault_has_its_exit_code(error: BaseException, code: int | None) -> None:
    assert faults.exit_code(error) == code


def test_a_fault_is_told_on_stderr_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert faults.report(NoLeader("none runs\nstart one")) == faults.NO_LEADER
    assert faults.report(FileNotFoundError(2, "No such file", "/there")) == faults.FAILED
    assert faults.report(trio.TooSlowError()) == faults.TIME_OVER
    assert capsys.readouterr().err.splitlines() == [
        "telegram-bus: none runs",
        "start one",
        "telegram-bus: No such file: /there",
        "telegram-bus: the time is over",
    ]


def test_the_groups_of_nurseries_do_not_hide_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    group = BaseExceptionGroup("outer", [ExceptionGroup("inner", [SettingsError("no token")])])
    assert faults.report(group) == faults.USAGE
    assert capsys.readouterr().err == "telegram-bus: no token\n"
    assert faults.report(BaseExceptionGroup("", [KeyboardInterrupt(), StateError("x")])) == faults.INTERRUPTED


def test_a_mistake_in_the_program_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        faults.report(ZeroDivisionError())
    with pytest.raises(ExceptionGroup):
        faults.report(ExceptionGroup("", [StateError("x"), ZeroDivisionError()]))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """The arguments that the command `probe`, which has options like any other, was run with."""
    found: list[argparse.Namespace] = []

    def run(arguments: argparse.Namespace) -> int:
        found.append(arguments)
        return len(found)

    def add_parser(subparsers: Any) -> None:
        parser = subparsers.add_parser("probe")
        parser.add_argument("--number", type=int, default=1)
        parser.add_argument("words", nargs="...")
        parser.set_defaults(run=run)

    module = type(sys)("probe_command")
    module.__dict__["add_parser"] = add_parser
    monkeypatch.setitem(sys.modules, "probe_command", module)
    monkeypatch.setattr(command_line, "COMMANDS", {"probe": ("probe_command", "for tests")})
    return found


@pytest.mark.parametrize(
    "argv",
    [
        ["--profile", "p", "--home", "h", "probe", "--number", "2", "--", "a", "--b"],
        ["probe", "--profile", "p", "--number=2", "--home", "h", "--", "a", "--b"],
        ["--profile=p", "probe", "--home=h", "--number", "2", "--", "a", "--b"],
    ],
)
def test_global_options_stand_before_or_behind_the_command(seen: list[argparse.Namespace], argv: list[str]) -> None:
    assert command_line.main(argv) == 1
    (arguments,) = seen
    assert (arguments.profile, arguments.home, arguments.number) == ("p", "h", 2)
    assert [word for word in arguments.words if word != "--"] == ["a", "--b"]


def test_without_options_everything_has_its_default(seen: list[argparse.Namespace]) -> None:
    command_line.main(["probe"])
    assert (seen[0].profile, seen[0].home, seen[0].number, seen[0].words) == (None, None, 1, [])


def test_a_wrong_option_is_a_usage_error(seen: list[argparse.Namespace], capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["probe", "--numbr", "2"]) == faults.USAGE
    assert command_line.main(["probe", "--num", "2"]) == faults.USAGE
    assert command_line.main(["--nonsense", "probe"]) == faults.USAGE
    assert not seen
    assert "--numbr" in capsys.readouterr().err


def test_a_mistyped_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["statsu"]) == faults.USAGE
    assert "did you mean status?" in capsys.readouterr().err
    assert command_line.main(["xyzzy"]) == faults.USAGE
    assert "demo, leader, follower" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["status", "--jsno"], "telegram-bus status: there is no option --jsno; did you mean --json?"),
        (["logs", "--line=3"], "telegram-bus logs: there is no option --line; did you mean --lines?"),
        (["--hom", "x", "status"], "telegram-bus: there is no option --hom; did you mean --home?"),
        (["purge", "--xyzzy"], "telegram-bus purge: there is no option --xyzzy"),
        (["purge", "all"], "telegram-bus purge: 'all' is one word too many"),
        (["logs", "-n", "-3"], "telegram-bus logs: argument -n/--lines: '-3' is no number of lines: 0 or more"),
        (["logs", "-n", "few"], "telegram-bus logs: argument -n/--lines: 'few' is no number of lines: 0 or more"),
    ],
)
def test_a_complaint_begins_with_what_is_wrong_and_ends_with_where_to_read_on(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(argv) == faults.USAGE
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == said
    assert last == f"more: {said.partition(': ')[0]} --help"


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(argv) == faults.DONE
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in command_line.COMMANDS)


@pytest.mark.parametrize("command", sorted(command_line.COMMANDS))
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main([command, "--help"]) == faults.DONE
    text = capsys.readouterr().out
    assert f"telegram-bus {command}" in text
    assert "--profile" in text


@pytest.mark.parametrize("command", ["", *command_line.COMMANDS])
def test_help_fits_into_80_columns_and_ends_with_exit_codes_and_examples(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command_line.main([*filter(None, [command]), "--help"])
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    if command:
        assert re.search(rf"\n\nexamples:\n(?:  .*\n)*  .*telegram-bus .*{command}", text)
    codes = re.search(r"\n\nexit codes:\n((?:  .*\n)+)", text)
    assert codes
    listed = re.findall(r"^  (\d)  ", codes.group(1), re.MULTILINE)
    assert listed == sorted(set(listed))
    assert listed[0] == "0"
    assert set(listed) <= {str(code) for code in range(6)}


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    done = bus("--version", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"telegram-bus {__version__}\n")


@pytest.mark.parametrize("arguments", [["--version"], ["status"], ["logs"], ["stop"]])
def test_quick_commands_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    code = (
        f"import sys\nfrom telegram_bus.__main__ import main\nmain({arguments!r})\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TELEGRAM_BUS_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"], ["logs"], ["stop"]])
def test_without_a_leader_the_exit_code_is_3_and_the_next_step_is_named(arguments: list[str], tmp_path: Path) -> None:
    done = bus(*arguments, home=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("telegram-bus: ")
    assert "Traceback" not in done.stderr


def test_the_next_step_goes_where_this_one_went(tmp_path: Path) -> None:
    elsewhere = tmp_path / "my home"
    done = bus("--profile", "work", "status", "--home", str(elsewhere), home=tmp_path)
    assert f"telegram-bus --home '{elsewhere}' --profile work leader --help" in done.stderr
    assert "\nstart one with your bot's token: telegram-bus leader --help\n" in bus("status", home=tmp_path).stderr


def test_a_bad_profile_name_is_a_usage_error(tmp_path: Path) -> None:
    done = bus("status", "--profile", "../x", home=tmp_path)
    assert done.returncode == 2
    assert "no profile name" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("chat = [", "config.toml is damaged"),
        ("frob = 1", "config.toml has the unknown key 'frob'"),
        ("chat = 5", "keeps no token, so its leader has to be started by hand: telegram-bus leader"),
    ],
)
def test_settings_that_no_leader_can_start_with_are_a_usage_error(tmp_path: Path, content: str, said: str) -> None:
    config = tmp_path / "profiles" / "default" / "config.toml"
    config.parent.mkdir(parents=True, mode=0o700)
    config.write_text(content)
    config.chmod(0o600)
    done = bus("start", home=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert done.returncode == faults.USAGE
    assert said in done.stderr


def test_nobody_who_stops_reading_gets_a_complaint(tmp_path: Path) -> None:
    log = tmp_path / "profiles" / "default" / "logs" / "leader.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line of the log that is long enough to fill every buffer\n" * 20_000)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "telegram_bus", "logs", "-n", "20000"],
            env=os.environ | {"TELEGRAM_BUS_HOME": str(tmp_path)},
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
