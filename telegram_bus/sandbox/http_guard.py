"""Which requests may reach the page and its control: not those of some web site (rebinding, CSRF)."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["SECURITY_HEADERS", "objection"]

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self'; "
        "connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def objection(method: str, headers: Iterable[tuple[bytes, bytes]], port: int) -> str | None:
    """Why a request outside the Bot API is refused; None when it may pass.

    A name that was re-bound to 127.0.0.1 shows in Host, a foreign page in Origin. A body must be declared as
    JSON, which no form can do, so that a foreign page has to ask first and is not answered.
    """
    found = {name.lower(): value for name, value in headers}
    hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
    if found.get(b"host", b"").lower() not in hosts:
        return f"open http://127.0.0.1:{port}/ instead: requests for other hosts are refused"
    origin = found.get(b"origin")
    if origin is not None and origin.lower() not in {b"http://" + host for host in hosts}:
        return "requests from other pages are refused"
    if method in {"GET", "HEAD"}:
        return None
    if not found.get(b"content-type", b"").lower().startswith(b"application/json"):
        return "send application/json"
    return None
