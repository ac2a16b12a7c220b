"""The live followers, as one of them sees the others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from attrs import frozen

from telegram_bus.core.extensions import MembersList
from telegram_bus.roles.member import Member

__all__ = ["MemberInfo", "list_members", "watch_members"]

WATCH_WAIT_MS: Final = 20_000  # how long the leader keeps a question for changes; below its own bound of 25 s


@frozen(kw_only=True)
class MemberInfo:
    """A live follower as the leader sees it; times are Unix milliseconds."""

    key: str
    name: str | None
    chat_id: int | None
    thread_id: int | None
    slot: str | None
    connected_at_ms: int
    last_heartbeat_ms: int


async def list_members(member: Member) -> tuple[MemberInfo, ...]:
    """Ask the leader once."""
    ack = await member.ask(lambda fields: MembersList(request_id=fields["request_id"], auth=fields["auth"]))
    return _members(ack.result)[1]


def watch_members(member: Member) -> AsyncIterator[tuple[MemberInfo, ...]]:
    """All live followers, now and whenever one comes or goes."""
    return _MemberWatch(member)


class _MemberWatch:
    """Asks for the members that come after those it has seen. No generator, so that a `break` leaves nothing open."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._seen: tuple[str, int] | None = None  # each leader counts its own revisions
        self._generation = ""

    def __aiter__(self) -> _MemberWatch:
        return self

    async def __anext__(self) -> tuple[MemberInfo, ...]:
        while True:
            revision, members = _members((await self._member.ask(self._question)).result)
            if (self._generation, revision) != self._seen:
                self._seen = self._generation, revision
                return members

    def _question(self, fields: dict[str, Any]) -> MembersList:
        self._generation = fields["registration_generation"]
        after = self._seen[1] if self._seen is not None and self._seen[0] == self._generation else None
        return MembersList(
            request_id=fields["request_id"],
            auth=fields["auth"],
            after_revision=after,
            wait_ms=None if after is None else WATCH_WAIT_MS,
        )


def _members(result: Any) -> tuple[int, tuple[MemberInfo, ...]]:
    return result["revision"], tuple(
        MemberInfo(
            key=entry["key"],
            name=entry.get("name"),
            chat_id=entry.get("target", {}).get("chatId"),
            thread_id=entry.get("target", {}).get("threadId"),
            slot=entry.get("slot"),
            connected_at_ms=entry["connectedAtMs"],
            last_heartbeat_ms=entry["lastHeartbeatMs"],
        )
        for entry in result["members"]
    )
