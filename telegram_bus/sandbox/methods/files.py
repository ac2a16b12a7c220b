"""getFile: where the bytes of a file are."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["METHODS", "getfile"]

MAX_DOWNLOAD = 20 << 20  # bytes, M15


def getfile(world: World, args: Args, now: float) -> Json:  # noqa: ARG001 - one shape for all methods
    """getFile (M15): a file that was forgotten is temporarily unavailable."""
    file_id = args.text("file_id").strip()
    if not file_id:
        raise bad_request("file_id not specified")
    file = world.files.find(file_id)
    if file is None:
        raise bad_request("invalid file_id")
    if file.size > MAX_DOWNLOAD:
        raise bad_request("file is too big")
    if file.content is None:
        raise bad_request("wrong file_id or the file is temporarily unavailable")
    named = ("file_id", "file_unique_id", "file_size")
    return {name: file.view[name] for name in named} | {"file_path": file.path}


METHODS = (getfile,)
