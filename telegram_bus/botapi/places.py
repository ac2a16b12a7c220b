"""How many calls of one follower may wait in the sender; who asks for more waits for a place."""

from __future__ import annotations

from typing import Final

import trio

__all__ = ["QUEUED", "Places"]

QUEUED: Final = 100
"""Calls of one follower that wait."""


class Places:
    """Places by follower; those of followers of which nothing waits cost nothing after a `sweep`."""

    def __init__(self) -> None:
        self.rooms: dict[str, trio.Semaphore] = {}

    async def take(self, owner: str) -> bool:
        """Take a place, once there is one; True where that took time. No checkpoint otherwise."""
        room = self.rooms.get(owner)
        if room is None:
            room = self.rooms[owner] = trio.Semaphore(QUEUED)
        if room.value:
            room.acquire_nowait()
            return False
        await room.acquire()
        return True

    def give_back(self, owner: str) -> None:
        """Let the next one have it."""
        self.rooms[owner].release()

    def sweep(self) -> None:
        """Forget the followers of which nothing waits."""
        self.rooms = {owner: room for owner, room in self.rooms.items() if room.value < QUEUED}
