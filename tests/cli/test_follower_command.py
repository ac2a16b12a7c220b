"""What `telegram-bus follower` checks before anything is started, and what its program inherits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from telegram_bus.cli import main as command_line
from telegram_bus.cli.environment import child_environment, profile_secrets
from telegram_bus.home import Home

TOKEN = "123456:" + "A" * 35


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TELEGRAM_BUS_HOME", str(tmp_path))
    monkeypatch.delenv("TELEGRAM_BUS_PARENT", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name", "x"], "no program to run"),
        (["--name", "x", "--"], "no program to run"),
        (["--name", " ", "--", "true"], "--name is empty"),
        (["--name", "x", "--", "surely-no-such-program"], "no such program"),
        (["--", "true"], "--name"),
    ],
)
def test_what_cannot_work_is_a_usage_error_and_makes_no_thread(
    arguments: list[str], words: str, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["follower", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(own_home.iterdir()) == []


def test_a_program_of_a_follower_does_not_get_a_thread_unasked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TELEGRAM_BUS_PARENT", "builder")
    assert command_line.main(["follower", "--name", "x", "--", "true"]) == 2
    assert "inside the follower 'builder'" in capsys.readouterr().err


def test_the_program_inherits_everything_but_token_and_secrets(own_home: Path) -> None:
    profile = Home().profile("work")
    profile.ensure()
    for path, secret in ((profile.follower_secret, "f" * 64), (profile.operator_secret, "0" * 64)):
        path.write_text(f"{secret}\n")
        path.chmod(0o600)
    profile.config_toml.write_text('token = "77:stored-token"\n')
    environ = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TELEGRAM_BOT_TOKEN": "1:short",
        "COPY": "token is 1:short",
        "OTHER_BOT": f"https://example.org/bot{TOKEN}/getMe",
        "STORED": "x77:stored-tokenx",
        "SECRET": "f" * 64,
        "OPERATOR": f"--secret={'0' * 64}",
        "TIME": "12345678:30",
        "EMPTY": "",
    }
    child = child_environment(environ, profile=profile, key="builder", secrets=profile_secrets(profile, environ))
    assert child == {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TIME": "12345678:30",
        "EMPTY": "",
        "TELEGRAM_BUS_HOME": str(own_home),
        "TELEGRAM_BUS_PROFILE": "work",
        "TELEGRAM_BUS_PARENT": "builder",
    }


def test_who_asks_twice_need_not_wait_for_a_stubborn_program(own_home: Path) -> None:
    ready = own_home / "ready"
    stubborn = f"trap '' TERM; echo $$ > {ready}.new; mv {ready}.new {ready}; while :; do sleep 0.1; done"
    command = [sys.executable, "-m", "telegram_bus", "follower", "--name", "x", "--", "sh", "-c", stubborn]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as follower:
        while not ready.exists() and follower.poll() is None:
            time.sleep(0.02)
        # two signals of one kind may arrive as one
        follower.send_signal(signal.SIGINT)
        follower.send_signal(signal.SIGTERM)
        _, errors = follower.communicate(timeout=60)
    assert follower.returncode == 0, errors
    assert "Traceback" not in errors
    assert not Path(f"/proc/{ready.read_text().strip()}").exists()


def test_a_profile_without_secrets_hides_nothing_but_tokens() -> None:
    profile = Home().profile()
    assert profile_secrets(profile, {}) == frozenset()
