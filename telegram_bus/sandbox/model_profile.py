"""What the bot tells of itself, by language: name, descriptions, menu buttons, wished rights, photos."""

from __future__ import annotations

import attrs

from telegram_bus.sandbox.model_types import Json

__all__ = ["Profile"]


@attrs.define
class Profile:
    """Texts by language code ("" for all others), menu buttons by chat (0: everywhere), rights by kind of chat."""

    names: dict[str, str] = attrs.field(factory=dict)
    descriptions: dict[str, str] = attrs.field(factory=dict)
    short_descriptions: dict[str, str] = attrs.field(factory=dict)
    buttons: dict[int, Json] = attrs.field(factory=dict)
    rights: dict[bool, Json] = attrs.field(factory=dict)
    photos: list[list[Json]] = attrs.field(factory=list)
