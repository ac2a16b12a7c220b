"""Buttons with data that Telegram does not carry: the leader keeps it, and short keys travel."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Any

from telegram_bus.core.buttons import callback_data, check_content
from telegram_bus.core.extensions import ButtonsKeep
from telegram_bus.core.jsontext import dumps
from telegram_bus.roles.member import Member

__all__ = ["kept_markup", "key_for", "new_key"]


def new_key() -> str:
    """The id of a keyboard that there has not been: 22 characters."""
    return secrets.token_urlsafe(16)


def key_for(*facts: Any) -> str:
    """The id of a keyboard that stands for these facts (JSON values): always the same for the same ones."""
    digest = hashlib.sha256(dumps(list(facts))).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


async def kept_markup(member: Member, markup: dict[str, Any], scope: str | None) -> dict[str, Any]:
    """The keyboard with short keys in place of what its buttons mean, which the leader keeps from now on.

    In one `scope` (a call id, say) the same buttons get the same keys, so that who sends them again after a crash sends
    the same message; None: they are new ones. Raises ValueError for data that is no JSON, or too much.
    """
    rows = markup["inline_keyboard"]
    with_data = [button for row in rows for button in row if "callback_data" in button]
    content = {
        "buttons": [[button.get("text"), button["callback_data"]] for button in with_data],
        "one_time": bool(markup.get("one_time")),
    }
    if markup.get("users") is not None:
        content["users"] = list(markup["users"])
    checked = check_content("-", content)
    ident = new_key() if scope is None else key_for(member.seat.key, scope, checked)
    await member.ask(lambda fields: ButtonsKeep(**fields, keyboard_id=ident, content=checked))
    numbers = {id(button): number for number, button in enumerate(with_data)}
    keyboard = [
        [
            {**button, "callback_data": callback_data(ident, numbers[id(button)])} if id(button) in numbers else button
            for button in row
        ]
        for row in rows
    ]
    rest = {name: value for name, value in markup.items() if name not in ("one_time", "users")}
    return {**rest, "inline_keyboard": keyboard}
