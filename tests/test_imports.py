"""What is not imported costs nothing: a follower stays small, and commands that only ask answer at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("telegram", "httpx", "asyncio", "rich", "starlette", "hypercorn", "markdown_it")


def imported_by(code: str, *arguments: str, **variables: str) -> set[str]:
    """The modules that an interpreter holds in the end which runs `code` with these arguments."""
    report = "\nimport sys, json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + report, *arguments],
        env=os.environ | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("module", ["telegram_bus.agent", "telegram_bus.cli.follower", "telegram_bus.roles.member"])
def test_a_follower_imports_neither_telegrams_library_nor_a_server(module: str) -> None:
    imported = imported_by(f"import {module}")
    assert module in imported
    assert imported.isdisjoint(HEAVY)


def test_markdown_is_read_by_a_library_that_is_imported_by_the_first_text() -> None:
    send = "from telegram_bus.followers.contents import content_of; content_of('*x*' * 3_000, {})"
    assert "markdown_it" not in imported_by(send.format("parse_mode='HTML'"))
    assert "markdown_it" in imported_by(send.format("markdown=True"))


def test_the_names_of_the_package_are_imported_when_they_are_asked_for() -> None:
    assert "telegram_bus.agent" not in imported_by("import telegram_bus")
    assert "telegram_bus.agent" in imported_by("import telegram_bus; telegram_bus.join")
    imported = imported_by("import telegram_bus; telegram_bus.CommitUnknown")
    assert "telegram_bus.core.errors" in imported
    assert "trio" not in imported


@pytest.mark.parametrize(
    "arguments", [("--version",), ("status",), ("status", "--json"), ("logs",), ("stop",), ("--help",)]
)
def test_commands_that_only_ask_import_no_trio(arguments: tuple[str, ...], tmp_path: Path) -> None:
    run = "from telegram_bus.cli.main import main; main()"
    imported = imported_by(run, *arguments, TELEGRAM_BUS_HOME=str(tmp_path))
    assert "telegram_bus.cli.main" in imported
    assert imported.isdisjoint({*HEAVY, "trio", "attrs", "cattrs"})
