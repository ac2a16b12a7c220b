"""Writes `telegram_bus/core/methods_table.py` from the Bot API's documentation: `python -m tests.clients.method_table`.

Only facts are taken over: names of fields, their types, whether they are required. A test compares what is committed
with what this would write.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

from telegram_bus.core.permissions import OWN
from tests.clients import peers

__all__ = ["PLACE", "table"]

PLACE: Final = Path(__file__).parents[2] / "telegram_bus" / "core" / "methods_table.py"
HEADER: Final = '''"""What the Bot API's documentation says of the methods that followers may call; made by a program.

A method or type is a line of fields: `name:kind`, or `name!:kind` for one that is required. Kinds: `int`, `float`,
`str`, `bool`, `true`, `file` (a file id, an address or an attachment), `'text'` (only this text), `any`, the name of
a type, `[kind]` for a list, and `a|b` for one of several. A line that begins with `=` is one of several types.

Made by `python -m tests.clients.method_table` from the documentation as aiogram's source carries it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BOT_API", "METHODS", "OTHERS", "TYPES"]

'''

_SUBTYPE = re.compile(r"^\s*- (\w+)$", re.MULTILINE)
_CONSTANT = re.compile(r"(?:always|must be) [^\w\s]?(?!one of)(\w+)")
_PLAIN: Final = {"Integer": "int", "Float": "float", "String": "str", "Boolean": "bool", "True": "true"}
_FILES: Final = frozenset({"media", "thumbnail", "cover", "photo"})
"""Fields of InputMedia… that name files, though the documentation calls them texts."""

_OPEN: Final = frozenset({"User"})
"""Of a mentioned user only the id is asked for (Bot API, MessageEntity), whatever its type requires elsewhere."""

Json = dict[str, Any]


def table() -> str:
    """The module's text, formatted."""
    schema = json.loads(peers.aiogram_schema().read_text(encoding="utf-8"))
    entries = {entry["name"]: entry for group in schema["items"] for entry in group["children"]}
    methods = sorted({*OWN.calls, *OWN.uploads})
    types: dict[str, str] = {}
    lines = {name: _line(entries[name], entries, types) for name in methods}
    text = HEADER + f"BOT_API: Final = {schema['api']['version']!r}\n"
    text += '"""The version of the documentation."""\n\n'
    others = textwrap.wrap(" ".join(sorted({name for name in entries if name[0].islower()} - {*methods})), 116)
    text += 'OTHERS: Final = """\n' + "\n".join(others) + '\n"""\n"""The methods that they may not call."""\n\n'
    text += f"METHODS: Final[dict[str, str]] = {_literal(lines)}\n\n"
    text += f"TYPES: Final[dict[str, str]] = {_literal(dict(sorted(types.items())))}\n"
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PLACE), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def _literal(lines: dict[str, str]) -> str:
    shown = []
    for name, line in lines.items():
        parts = textwrap.wrap(line, 100, break_long_words=False, break_on_hyphens=False, drop_whitespace=False)
        shown.append(
            f'    "{name}": (\n' + "\n".join(f"        {json.dumps(part)}" for part in parts or [""]) + "\n    ),"
        )
    return "{\n" + "\n".join(shown) + "\n}"


def _line(entry: Json, entries: dict[str, Json], types: dict[str, str]) -> str:
    return " ".join(_field(entry, item, entries, types) for item in entry["annotations"])


def _field(entry: Json, item: Json, entries: dict[str, Json], types: dict[str, str]) -> str:
    name = item["name"]
    required = item["required"] and not (entry["name"] in _OPEN and name != "id")
    constant = _CONSTANT.search(item["description"]) if name == "type" else None
    if constant is not None:
        kind = f"'{constant[1]}'"
    elif "InputFile" in item["type"] or (entry["name"].startswith("InputMedia") and name in _FILES):
        kind = "file"
    else:
        kind = _kind(item["type"], entries, types)
    return f"{name}{'!' if required else ''}:{kind}"


def _kind(documented: str, entries: dict[str, Json], types: dict[str, str]) -> str:
    if documented.startswith("Array of "):
        return f"[{_kind(documented.removeprefix('Array of '), entries, types)}]"
    several = re.split(r" or |, | and ", documented)
    if len(several) > 1:
        return "|".join(_kind(one, entries, types) for one in several)
    if documented in _PLAIN:
        return _PLAIN[documented]
    if documented not in types:
        types[documented] = ""  # so that a type that holds itself is met once
        types[documented] = _type(entries[documented], entries, types)
    if documented == "KeyboardButton":  # "For simple text buttons, String can be used instead"
        return f"str|{documented}"
    return documented


def _type(entry: Json, entries: dict[str, Json], types: dict[str, str]) -> str:
    subtypes = [name for name in _SUBTYPE.findall(entry["description"]) if name in entries]
    if entry["annotations"] or not subtypes:
        return _line(entry, entries, types)
    several = [_kind(name, entries, types) for name in subtypes]
    if entry["name"] == "RichText":  # "It can be either a String for plain text, an Array of RichText, or any of"
        several = ["str", "[RichText]", *several]
    return "=" + "|".join(several)


if __name__ == "__main__":
    PLACE.write_text(table(), encoding="utf-8")
