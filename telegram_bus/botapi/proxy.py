"""Which proxy leads to the Bot API, and how to name it without its password."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

__all__ = ["environment_proxy", "shown"]


def environment_proxy(root: str) -> str | None:
    """As curl and httpx read HTTPS_PROXY, ALL_PROXY and NO_PROXY; a server on this machine needs no proxy."""
    parts = urlsplit(root)
    host = parts.hostname or ""
    if host in {"localhost", "::1"} or host.startswith("127.") or proxy_bypass(host):
        return None
    found = getproxies()
    proxy = found.get(parts.scheme) or found.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def shown(proxy: str) -> str:
    """The proxy's address without its password."""
    try:
        parts = urlsplit(proxy)
        host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    except ValueError:
        return "(unreadable)"
    return f"{parts.scheme}://{parts.username}:***@{host}" if parts.username else f"{parts.scheme}://{host}"
