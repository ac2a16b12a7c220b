"""Other people's clients, their suites and the documentation's schema: fetched by version, kept in the user's cache.

Nothing of it goes into the project's own environment. A part is made anew when its pins change.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import platformdirs

from tests.require import missing

__all__ = ["aiogram_schema", "node", "node_folder", "ptb_source", "python", "telebot_source"]

HERE = Path(__file__).parent
CACHE = platformdirs.user_cache_path("telegram-bus-tests")
LIMIT = 300.0  # seconds for one installation, over a slow line
# Without a network they shall say so soon.
PIP = ("-q", "--disable-pip-version-check", "--retries", "1")
NPM = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1")

_failed: dict[str, str] = {}  # what could not be made, so that it is tried once only


def python() -> Path:
    """The interpreter of an environment that has pytest 9 and the Python clients."""
    return _part("python", HERE / "requirements.txt", _make_environment) / "bin" / "python"


def ptb_source() -> Path:
    """python-telegram-bot's source with its tests."""
    return _source("python_telegram_bot")


def telebot_source() -> Path:
    """pyTelegramBotAPI's source with its tests."""
    return _source("pytelegrambotapi")


def aiogram_schema() -> Path:
    """The Bot API's documentation as JSON, which aiogram's source carries."""
    return _source("aiogram") / ".butcher" / "schema" / "schema.json"


def node() -> str:
    """The command that runs JavaScript; skips the test where there is none."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        missing("node with npm", "apt install nodejs npm")
    return found


def node_folder() -> Path:
    """A folder with the JavaScript clients in its `node_modules`."""
    node()
    return _part("node", HERE / "package-lock.json", _make_modules)


def _source(name: str) -> Path:
    folder = _part("sources", HERE / "sources.txt", _make_sources)
    return next(item for item in folder.iterdir() if item.is_dir() and item.name.startswith(f"{name}-"))


class UnmadeError(Exception):
    """A part could not be made; the message says what to do."""


def _part(name: str, pins: Path, make: Callable[[Path], None]) -> Path:
    try:
        if name in _failed:
            raise UnmadeError(_failed[name])
        return _kept(name, pins, make)
    except UnmadeError as error:
        _failed[name] = str(error)
        missing("what these tests are run against", str(error))


@functools.cache
def _kept(name: str, pins: Path, make: Callable[[Path], None]) -> Path:
    # An environment belongs to one version of Python; what is made decides, and so does how.
    key = hashlib.sha256(pins.read_bytes() + sys.version.encode() + Path(__file__).read_bytes()).hexdigest()[:12]
    folder = CACHE / f"{name}-{key}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            for outdated in CACHE.glob(f"{name}-*"):
                shutil.rmtree(outdated)
            folder.mkdir()
            make(folder)
            (folder / "complete").touch()
    return folder


def _make_environment(folder: Path) -> None:
    venv.create(folder, with_pip=True)
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", *PIP, "-r", str(HERE / "requirements.txt")])


def _make_sources(folder: Path) -> None:
    _run([
        *(sys.executable, "-m", "pip", "download", *PIP, "--no-deps", "--no-binary", ":all:"),
        *("-r", str(HERE / "sources.txt"), "-d", str(folder)),
    ])  # fmt: skip
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    # python-telegram-bot's source lacks the larger media that its tests send; any file of the same kind does.
    data = next(folder.glob("python_telegram_bot-*/tests/data"))
    shutil.copy(data / "thumb.jpg", data / "telegram.jpg")
    shutil.copy(data / "game.png", data / "telegram.png")
    shutil.copy(next(folder.glob("pytelegrambotapi-*/tests/test_data/record.ogg")), data / "telegram.ogg")


def _make_modules(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    _run(["npm", "ci", *NPM, "--prefix", str(folder)])


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as error:
        raise UnmadeError(f"`{' '.join(command)}` did not end in {LIMIT} s; try it by hand") from error
    except subprocess.CalledProcessError as error:
        said = " / ".join(error.stderr.strip().splitlines()[:3])
        raise UnmadeError(f"`{' '.join(command)}` has to work; it says: {said[:300]}") from error
