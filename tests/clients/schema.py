"""The Bot API's documentation as an oracle: what a request or an answer has that it should not, or lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from tests.clients.traffic import Call, Traffic

__all__ = ["Oracle", "read_oracle"]

Json = dict[str, Any]

_SUBTYPE = re.compile(r"^\s*- (\w+)$", re.MULTILINE)
# 'The member's status in the chat, always "left"', 'Type of the result, must be photo', but not 'must be one of'
_CONSTANT = re.compile(r"(?:always|must be) [^\w\s]?(?!one of)(\w+)")
_TAGS = frozenset({"type", "status", "source"})
_RETURNED = re.compile(r"[^.]*[Rr]eturn[^.]*\.")
_OTHER = " instead of the fixed "
_PLAIN = frozenset({"Integer", "Float", "String", "Boolean", "True"})


@attrs.frozen
class Field:
    """A field of a type or a parameter of a method; `constant` is the only value that it may have."""

    kind: str
    required: bool
    constant: str | None


@attrs.frozen
class Oracle:
    """All types and methods by name; `unions` are the types that are one of several others."""

    fields: dict[str, dict[str, Field]]
    unions: dict[str, tuple[str, ...]]
    results: dict[str, tuple[str, ...]]

    def differences(self, traffic: Traffic) -> list[str]:
        """What in a run is not as documented; each difference once, however often it occurred."""
        found: dict[str, None] = {}
        for call in traffic.calls:
            found |= dict.fromkeys(self.in_call(call))
        for update in traffic.updates:
            found |= dict.fromkeys(_named("update", self.in_value("Update", update)))
        return list(found)

    def in_call(self, call: Call) -> list[str]:
        """What is wrong with a call and its result; one that was refused may lack something."""
        if call.method not in self.results:
            return [f"{call.method}: carried out, though not documented"] if call.ok else []
        wrong = list(_named(call.method, self._in_params(call)))
        if call.ok and call.method != "getUpdates":
            result = self._in_union(self.results[call.method], call.result)
            wrong += _named(f"result of {call.method}", result)
        return wrong

    def in_value(self, kind: str, value: Any) -> list[str]:
        """What is wrong with a value of a documented type."""
        if " or " in kind:
            return self._in_union(tuple(kind.split(" or ")), value)
        if kind.startswith("Array of "):
            if not isinstance(value, list):
                return [f": not a list, but {_short(value)}"]
            item = re.sub(r", | and ", " or ", kind.removeprefix("Array of "))
            return [f"[]{wrong}" for element in value for wrong in self.in_value(item, element)]
        if kind in _PLAIN:
            return [] if _is_plain(kind, value) else [f": {_short(value)} is no {kind}"]
        if kind == "KeyboardButton" and isinstance(value, str):
            return []  # "For simple text buttons, String can be used instead"
        if kind in self.unions:
            return self._in_union(self.unions[kind], value)
        return self._in_object(kind, value)

    def _in_object(self, kind: str, value: Any) -> list[str]:
        if not isinstance(value, dict):
            return [f": {_short(value)} is no {kind}"]
        fields = self.fields[kind]
        wrong = [f".{name}: {kind} has no such field" for name in value if name not in fields]
        wrong += [f".{name}: missing in {kind}" for name in _lacking(fields, value)]
        for name in fields.keys() & value.keys():
            field = fields[name]
            if field.constant is not None and value[name] != field.constant:
                wrong.append(f".{name}: {_short(value[name])}{_OTHER}{field.constant!r}")
            wrong += [f".{name}{inner}" for inner in self.in_value(field.kind, value[name])]
        return wrong

    def _in_union(self, kinds: Iterable[str], value: Any) -> list[str]:
        # Of several possible types, the one that fits best tells what is wrong: that which its tag names.
        def misfit(wrong: list[str]) -> tuple[bool, int]:
            return any(_OTHER in difference for difference in wrong), len(wrong)

        return min((self.in_value(kind, value) for kind in kinds), key=misfit)

    def _in_params(self, call: Call) -> list[str]:
        fields, wrong = self.fields[call.method], []
        for name, value in call.params.items():
            field = fields.get(name)
            if field is None:
                if not _is_attached(name, call.params):
                    wrong.append(f".{name}: no such parameter")
            elif call.ok:
                wrong += [f".{name}{inner}" for inner in self._in_param(field.kind, value)]
        if call.ok:
            wrong += [f".{name}: missing" for name in _lacking(fields, call.params)]
        return wrong

    def _in_param(self, kind: str, value: Any) -> list[str]:
        # Parameters travel as text, and the record decodes what looks like JSON.
        kinds = kind.split(" or ")
        if "InputFile" in kinds and _is_upload(value):
            return []
        if "String" in kinds and isinstance(value, str | int | float):
            return []
        if kind in {"Boolean", "True"} and str(value).lower() in {"true", "false"}:
            return []
        if kind == "Float" and isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", value):
            return []
        return self.in_value(kind, value)


def read_oracle(path: Path) -> Oracle:
    """Read the documentation as aiogram's `schema.json` has it."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    entries: list[Json] = [entry for group in schema["items"] for entry in group["children"]]
    types = {entry["name"] for entry in entries if entry["category"] == "types"}
    fields = {entry["name"]: {item["name"]: _field(item) for item in entry["annotations"]} for entry in entries}
    unions = {
        entry["name"]: subtypes for entry in entries
        if not entry["annotations"] and (subtypes := _subtypes(entry, types))
    }  # fmt: skip
    methods = [entry for entry in entries if entry["category"] == "methods"]
    results = {entry["name"]: tuple(_returned(entry["description"], types)) for entry in methods}
    return Oracle(fields, unions, results)


def _field(item: Json) -> Field:
    constant = _CONSTANT.search(item["description"]) if item["name"] in _TAGS else None
    return Field(item["type"], item["required"], constant[1] if constant else None)


def _subtypes(entry: Json, types: set[str]) -> tuple[str, ...]:
    if entry["name"] == "RichText":
        return ("String", "Array of RichText", *_listed(entry, types))
    return tuple(_listed(entry, types))


def _listed(entry: Json, types: set[str]) -> list[str]:
    return [name for name in _SUBTYPE.findall(entry["description"]) if name in types]


def _returned(description: str, types: set[str]) -> Iterator[str]:
    # "On success, an Array of Message objects that were sent is returned."
    text = " ".join(_RETURNED.findall(description)).replace("Int ", "Integer ")
    for array, name in re.findall(r"(Array of )?\b([A-Z]\w+)", text):
        if name in types or name in _PLAIN:
            yield array + name


def _lacking(fields: dict[str, Field], given: Json) -> list[str]:
    return [name for name, field in fields.items() if field.required and name not in given]


def _named(what: str, wrong: Iterable[str]) -> Iterator[str]:
    return (f"{what}{difference}" for difference in wrong)


def _is_plain(kind: str, value: Any) -> bool:
    match kind:
        case "Integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "Float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "String":
            return isinstance(value, str)
        case "True":
            return value is True
        case _:
            return isinstance(value, bool)


def _is_upload(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"file_name", "size"}


def _is_attached(name: str, params: Json) -> bool:
    return _is_upload(params[name]) and f'"attach://{name}"' in json.dumps(params)


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:80]
