"""The person at the other end of the demo: writes into threads of the sandbox and reads what comes back."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from telegram_bus.core.errors import BusError

__all__ = ["Person"]

_MARGIN: Final = 5.0
"""Seconds beyond the asked ones after which a sandbox that does not answer is given up."""


class Person:
    """The owner of the bot, by way of the sandbox's control; `address` is what `sandbox --json` printed."""

    def __init__(self, address: dict[str, Any]) -> None:
        self.address = address
        self._place = urlsplit(address["api_root"]).netloc

    def topics(self) -> dict[str, int]:
        """The threads of the private chat: name and id."""
        chats = self._ask("GET", "/sandbox/state")["chats"]
        chat = next(chat for chat in chats if chat["id"] == self.address["chat_id"])
        return {topic["name"]: topic["thread_id"] for topic in chat["topics"]}

    def say(self, text: str, thread_id: int) -> int:
        """Writes into a thread; returns the number of the last change before, for `replies`."""
        seen: int = self._ask("GET", "/sandbox/state")["seq"]
        self._ask("POST", "/sandbox/say", {"text": text, "thread_id": thread_id})
        return seen

    def press(self, message_id: int, data: str) -> None:
        """Presses a button under a message."""
        self._ask("POST", "/sandbox/press", {"message_id": message_id, "data": data})

    def reply(self, thread_id: int, seen: int, seconds: float, containing: str = "") -> dict[str, Any]:
        """The first message of the bot in that thread after the change `seen` with that text in it.

        Raises TimeoutError when none comes in time.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            query = urlencode({"after": seen, "wait": round(left, 3)})
            answer = self._ask("GET", f"/sandbox/changes?{query}", seconds=left)
            seen = answer["seq"]
            for change in answer["changes"]:
                message = change.get("message") or {}
                ours = message.get("by_bot") and message.get("message_thread_id") == thread_id
                if ours and "text" in message and containing in message["text"]:
                    return dict(message)
        raise TimeoutError(f"nothing came back within {seconds:.0f} s")

    def _ask(self, method: str, path: str, body: Any = None, seconds: float = 0.0) -> Any:
        with closing(http.client.HTTPConnection(self._place, timeout=seconds + _MARGIN)) as connection:
            data = None if body is None else json.dumps(body)
            try:
                connection.request(method, path, data, {"Content-Type": "application/json"})
                response = connection.getresponse()
                answer = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise BusError(f"the sandbox at {self._place} does not answer: {error}") from error
        if response.status != http.client.OK:
            raise BusError(f"the sandbox refused {path}: {answer.get('error')}")
        return answer
