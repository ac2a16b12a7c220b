"""What a new thread is called: a template with the follower's name, its project and its branch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import trio

from telegram_bus.core.envelopes import Registration
from telegram_bus.core.threads import DEFAULT_TEMPLATE, fill_template

__all__ = ["place_of", "wanted_name"]

_MOST: Final = 4_096  # bytes of a HEAD that are read


async def wanted_name(template: str, registration: Registration) -> str | None:
    """The name that a follower's thread shall have; None where the palette has to give one.

    What is not known is left out, with the punctuation around it. The follower's files are looked at only where the
    template wants something of them.
    """
    name = registration.thread_name
    if template == DEFAULT_TEMPLATE:
        return name
    project = branch = ""
    if registration.cwd and ("{project}" in template or "{branch}" in template):
        project, branch = await trio.to_thread.run_sync(place_of, registration.cwd)
    return fill_template(template, name=name or "", project=project, branch=branch)


def place_of(directory: str) -> tuple[str, str]:
    """The project and the branch of a directory, each "" where there is none: by the nearest `.git` above it."""
    try:
        here = Path(directory)
        if not here.is_absolute():
            return "", ""
        for place in (here, *here.parents):
            head = _head(place / ".git")
            if head is not None:
                branch = head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""
                return place.name, branch
    except OSError:
        pass
    return os.path.basename(directory.rstrip("/")), ""  # noqa: PTH119 - it may be no path of this machine


def _head(git: Path) -> str | None:
    """What the HEAD of a repository or of a work tree says; None where there is none."""
    if git.is_file():  # a work tree: "gitdir: <path>"
        said = _read(git)
        if not said.startswith("gitdir: "):
            return None
        git = git.parent / said.removeprefix("gitdir: ")
    head = git / "HEAD"
    return _read(head) if head.is_file() else None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST).decode(errors="replace").strip()
