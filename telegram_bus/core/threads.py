"""Names, slots and keys: how a follower's thread is called and found again."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Collection
from hashlib import sha256
from string import ascii_uppercase
from typing import Final

__all__ = [
    "DEFAULT_TEMPLATE",
    "FIELDS",
    "ICON_COLOURS",
    "NAME_LIMIT",
    "PALETTE",
    "check_template",
    "clean_name",
    "fill_template",
    "free_key",
    "free_slot",
    "icon_colour",
    "slug",
    "thread_name",
]

NAME_LIMIT: Final = 128
"""Telegram cuts a topic's name silently after so many code points (bot-api T7)."""

LOOKED_AT: Final = 16 * NAME_LIMIT
"""Characters of a name that are looked at: one of megabytes took longer than a leader may be silent."""

ICON_COLOURS: Final = (7322096, 16766590, 13338331, 9367192, 16749490, 16478047)
"""The colours that Telegram takes for a topic's icon (bot-api T9)."""

KEY_LIMIT: Final = 48
"""Characters of a key: it names a directory and a socket, whose path is short."""

DEFAULT_TEMPLATE: Final = "{name}"
FIELDS: Final = ("name", "project", "branch")
"""What a template for names of threads may have in it."""

PALETTE: Final[tuple[str, ...]] = tuple(
    """
    Acorn Alder Almond Amber Anchor Anvil Apple Apricot Aspen Aster Atlas Aurora Badger Bamboo Banjo Barley
    Basalt Basil Bay Beacon Beaver Bell Birch Bison Bloom Bluebell Boulder Bramble Breeze Brick Bridge Brook
    Burrow Butter Cactus Canoe Canyon Caraway Cedar Cello Chalk Cherry Chestnut Cinder Citrus Clay Cliff Cloud
    Clover Cobalt Comet Compass Copper Coral Corner Cosmos Cotton Crane Creek Cricket Crocus Crystal Cypress
    Dahlia Daisy Dawn Delta Dew Dolphin Dove Drum Dune Dusk Eagle Echo Elder Elm Ember Falcon Fern Fiddle
    Field Finch Fir Fjord Flax Flint Flute Fog Forest Forge Fox Frost Galaxy Garnet Ginger Glacier Glade Gorge
    Granite Grove Gull Harbor Harp Hawk Hazel Heath Heather Hedge Heron Hickory Hill Holly Honey Horizon Iris
    Iron Island Ivory Ivy Jade Jasmine Jasper Juniper Kelp Kestrel Kettle Kite Lagoon Lake Lantern Larch Lark
    Laurel Lava Lavender Leaf Lemon Lichen Lilac Lily Linden Linen Lotus Lynx Magnet Mango Maple Marble
    Marigold Marsh Meadow Melon Mesa Meteor Mica Mill Mint Mist Moon Moss Mulberry Nectar Nettle Nickel Nimbus
    Nova Nutmeg Oak Oasis Ocean Olive Onyx Opal Orbit Orchid Osprey Otter Owl Paprika Parsley Peach Pearl
    Pebble Pepper Petal Pine Plum Pond Poplar Poppy Prairie Prism Quarry Quartz Quill Quince Rain Raven Reef
    Ridge River Robin Rocket Rosemary Rowan Ruby Saffron Sage Sail Sapphire Satin Seal Sequoia Shale Shell
    Sierra Silver Slate Snow Sorrel Sparrow Spruce Star Stone Storm Summit Swift Tamarind Teal Thistle Thyme
    Tide Timber Topaz Tulip Tundra Valley Velvet Violet Walnut Willow Wren Yarrow Zephyr Zinnia
    """.split()
)
"""Names for threads whose follower brings none: short, easy to say, none of them a word of the trade."""


def clean_name(name: str) -> str:
    """A name as Telegram will keep it: white space collapsed, no control characters, at most 128 code points.

    Halves of characters, which neither Telegram nor a store takes, go as well.
    """
    begin = name.strip()[:LOOKED_AT]
    printable = "".join(" " if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} else c for c in begin)
    return " ".join(printable.split())[:NAME_LIMIT].strip()


def thread_name(wanted: str | None, key: str, taken: Collection[str]) -> str:
    """A name for the thread of `key` that no name in `taken` equals, whatever the case.

    The wanted one, numbered from 2 where it is taken; else one of the palette, chosen by the key.
    """
    used = {name.casefold() for name in taken}
    base = clean_name(wanted or "")
    if not base:
        start = int.from_bytes(sha256(key.encode("utf-8", "surrogatepass")).digest()[:4], "big")
        around = (PALETTE[(start + step) % len(PALETTE)] for step in range(len(PALETTE)))
        base = next((name for name in around if name.casefold() not in used), PALETTE[start % len(PALETTE)])
    number, name = 1, base
    while name.casefold() in used:
        number += 1
        suffix = f" {number}"
        name = base[: NAME_LIMIT - len(suffix)].rstrip() + suffix
    return name


def check_template(template: str) -> str:
    """The template as it is; raises ValueError for one that is no template."""
    try:
        named = [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]
    except ValueError as error:
        raise ValueError(f"is no template: {error}") from None
    if not named or any(field not in FIELDS for field in named):
        known = ", ".join(f"{{{field}}}" for field in FIELDS)
        raise ValueError(f"must have one or more of {known} in it, and no other braces")
    return template


def fill_template(template: str, *, name: str, project: str, branch: str) -> str | None:
    """The template with these words; None where nothing but punctuation is left."""
    words = {"name": name, "project": project, "branch": branch}
    values = {field: word.strip()[:LOOKED_AT] for field, word in words.items()}
    text = "".join(
        literal + (values.get(field, "") if field is not None else "\0")
        for literal, field, _, _ in string.Formatter().parse(template)
    ).replace("\0", "")
    text = re.sub(r"\(\s*\)|\[\s*\]|<\s*>", "", text)
    text = re.sub(r"\s+", " ", text).strip(" -\u2013\u2014:\u00b7,/|@")
    return text if any(character.isalnum() for character in text) else None


def icon_colour(number: int) -> int:
    """A colour for the icon of the `number`-th thread of a chat: neighbours differ, so that people tell them apart."""
    return ICON_COLOURS[number % len(ICON_COLOURS)]


def free_slot(wanted: str | None, taken: Collection[str]) -> str | None:
    """The wanted letter if it is free, else the first free one of A-Z, else None: more than 26 work without."""
    if wanted is not None and wanted not in taken:
        return wanted
    return next((letter for letter in ascii_uppercase if letter not in taken), None)


def slug(name: str) -> str:
    """A name as a key: lower-case ASCII letters, digits, single dashes; never empty, never a path."""
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")[:KEY_LIMIT].rstrip("-")
    if plain:
        return plain
    return "agent-" + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def free_key(base: str, number: int) -> str:
    """The `number`-th key for one name, from 1: `builder`, `builder-2`, `builder-3`, …"""
    return base if number == 1 else f"{base}-{number}"
