"""Files down: `/file/bot<token>/<file_path>` for bots, `/sandbox/file/<file_id>` for the page."""

from __future__ import annotations

import re
from urllib.parse import quote

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_files import StoredFile

__all__ = ["download", "shown_file"]

_PATH = re.compile(r"/file/bot([^/]*)/(?:test/)?(.+)")
# What a browser may show as part of the page; everything else is saved, so that no upload runs as a page of ours.
_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "audio/ogg", "audio/mpeg", "video/mp4"})


def download(world: World, scope: Scope) -> Response:
    """What a bot gets for the `file_path` of getFile (M15)."""
    matched = _PATH.fullmatch(scope["path"])
    if matched is None or scope["method"] not in {"GET", "HEAD"}:
        return _error(404, "Not Found")
    if matched[1] != world.token:
        return _error(401, "Unauthorized")
    file = world.files.at(matched[2])
    if file is None or file.content is None:
        return _error(404, "Not Found")
    return _part(file.content, dict(scope["headers"]).get(b"range", b"").decode("latin-1"))


def _part(content: bytes, asked: str) -> Response:
    """All of it or, as Telegram's servers do for `Range: bytes=a-` and `bytes=a-b`, the part that was asked for."""
    headers, size = {"accept-ranges": "bytes"}, len(content)
    found = re.fullmatch(r"bytes=([0-9]{1,18})-([0-9]{0,18})", asked.strip())
    if found is None:
        return Response(content, media_type="application/octet-stream", headers=headers)
    first, last = int(found[1]), min(int(found[2]) if found[2] else size - 1, size - 1)
    if first > last:
        return Response(status_code=416, headers={**headers, "content-range": f"bytes */{size}"})
    headers["content-range"] = f"bytes {first}-{last}/{size}"
    return Response(content[first : last + 1], status_code=206, media_type="application/octet-stream", headers=headers)


def shown_file(world: World, scope: Scope) -> Response:
    """What the page gets."""
    file = world.files.find(scope["path"].removeprefix("/sandbox/file/"))
    if file is None or file.content is None:
        return JSONResponse({"error": "no such file any more"}, status_code=404)
    if file.mime in _SHOWN:
        return Response(file.content, media_type=file.mime)
    name = quote(_name(file))
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(file.content, media_type="application/octet-stream", headers=headers)


def _name(file: StoredFile) -> str:
    return str(file.view.get("file_name") or file.path.rpartition("/")[2])


def _error(code: int, description: str) -> Response:
    return JSONResponse({"ok": False, "error_code": code, "description": description}, status_code=code)
