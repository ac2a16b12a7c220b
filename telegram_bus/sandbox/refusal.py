"""What the Bot API says when it refuses a call, worded as its server words it."""

from __future__ import annotations

from typing import Any

__all__ = ["Refusal", "bad_request", "forbidden"]


class Refusal(Exception):
    """A call that fails: `code` is the HTTP status and error_code, `parameters` Telegram's ResponseParameters."""

    def __init__(self, code: int, description: str, parameters: dict[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def body(self) -> dict[str, Any]:
        """The answer's JSON object."""
        answer: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            answer["parameters"] = self.parameters
        return answer


def bad_request(text: str, parameters: dict[str, Any] | None = None) -> Refusal:
    """A 400 with the server's rule for its first letter."""
    return Refusal(400, f"Bad Request: {_lowered(text)}", parameters)


def forbidden(text: str) -> Refusal:
    """A 403 with the server's rule for its first letter."""
    return Refusal(403, f"Forbidden: {_lowered(text)}")


def _lowered(text: str) -> str:
    # MESSAGE_ID_INVALID and TOPIC_CLOSED stay as they are (contract H8).
    second = text[1:2]
    if second == "_" or second.isupper():
        return text
    return text[:1].lower() + text[1:]
