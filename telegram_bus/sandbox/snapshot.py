"""A world as text, and back: the graph of its objects, whatever fields they have. Pure.

Only classes of the sandbox's own `model…` modules are ever made, and none of their code is named by the text. Objects
that are shared (the sender of many messages) stay shared. An attribute that the text does not have keeps its default,
one that the class does not have is dropped, so that fields may come and go between versions.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import random
import re
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import attrs

from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_polls import Polls
from telegram_bus.sandbox.model_views import world_state

__all__ = ["DamagedError", "Snapshot", "from_snapshot", "take_snapshot"]

PACKAGE: Final = "telegram_bus.sandbox."
_MODULE = re.compile(r"model(_[a-z]+)?")
_PLAIN: Final = frozenset({type(None), bool, int, float, str})
_COLLECTIONS: Final[dict[str, type]] = {"tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}
# Belongs to the running process: who waits, who follows, where chance comes from.
_PASSING: Final = frozenset({"rng", "_rng", "polls", "changes"})


class DamagedError(Exception):
    """A snapshot that no world can be made of."""


@attrs.frozen
class Snapshot:
    """`graph` is made of JSON values; `blobs` are the bytes in it (contents of files), by their SHA-256."""

    graph: Any
    blobs: dict[str, bytes]


def take_snapshot(world: World) -> Snapshot:
    """The world as it is now; raises TypeError for what cannot be kept, which is a fault of ours."""
    writer = _Writer()
    return Snapshot(writer.encode(world), writer.blobs)


def from_snapshot(graph: Any, blobs: Mapping[str, bytes], rng: random.Random) -> World:
    """The world of a snapshot; raises DamagedError."""
    try:
        world = _Reader(blobs, rng).decode(graph)
    except DamagedError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, ImportError) as error:
        raise DamagedError(f"{type(error).__name__}: {error}") from error
    if not isinstance(world, World):
        raise DamagedError("it holds no world")
    world.polls = Polls(world.queue)
    try:
        # Looks at everything once, so that no conversation comes upon what is missing.
        world_state(world)
        len(world.queue)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"{type(error).__name__}: {error}") from error
    return world


class _Writer:
    # Thousands of messages are written at once: what is asked often is asked by type.
    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self._numbers: dict[int, int] = {}
        self._kinds: dict[type, tuple[str, list[tuple[str, Any]]]] = {}

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is dict:
            return self._dict(value)
        if kind is list:
            return [self.encode(item) for item in value]
        if kind is bytes:
            name = hashlib.sha256(value).hexdigest()
            self.blobs[name] = value
            return {"$": "bytes", "v": name}
        if kind.__name__ in _COLLECTIONS:
            # Sets in one order, so that the same world gives the same text.
            items = sorted(value, key=repr) if kind in (set, frozenset) else value
            return {"$": kind.__name__, "v": [self.encode(item) for item in items]}
        return self._object(value)

    def _dict(self, value: dict[Any, Any]) -> Any:
        if all(type(key) is str for key in value) and "$" not in value:
            return {key: item if type(item) in _PLAIN else self.encode(item) for key, item in value.items()}
        return {"$": "dict", "v": [[self.encode(key), self.encode(item)] for key, item in value.items()]}

    def _object(self, value: Any) -> Any:
        if (number := self._numbers.get(id(value))) is not None:
            return {"$": "#", "v": number}
        self._numbers[id(value)] = len(self._numbers)
        name, fields = self._kinds.get(type(value)) or self._learn(value)
        kept = {}
        for field, default in fields:
            item = getattr(value, field)
            if item != default:
                kept[field] = item if type(item) in _PLAIN else self.encode(item)
        return {"$": "object", "c": name, "v": kept}

    def _learn(self, value: Any) -> tuple[str, list[tuple[str, Any]]]:
        kind = type(value)
        module = kind.__module__.removeprefix(PACKAGE)
        if not kind.__module__.startswith(PACKAGE) or not _MODULE.fullmatch(module):
            raise TypeError(f"a {kind.__module__}.{kind.__name__} cannot be kept")
        defaults = _defaults(kind)
        learnt = (f"{module}:{kind.__name__}", [(name, defaults.get(name, attrs.NOTHING)) for name in _names(value)])
        if attrs.has(kind):
            self._kinds[kind] = learnt
        return learnt


class _Reader:
    def __init__(self, blobs: Mapping[str, bytes], rng: random.Random) -> None:
        self._blobs, self._rng = blobs, rng
        self._objects: list[Any] = []

    def decode(self, graph: Any) -> Any:
        if isinstance(graph, list):
            return [self.decode(item) for item in graph]
        if not isinstance(graph, dict):
            return graph
        kind = graph.get("$")
        match kind:
            case None:
                return {key: self.decode(item) for key, item in graph.items()}
            case "dict":
                return {self.decode(key): self.decode(item) for key, item in graph["v"]}
            case "bytes":
                return self._blobs[graph["v"]]
            case "#":
                return self._objects[graph["v"]]
            case "object":
                return self._object(graph)
        return _COLLECTIONS[kind](self.decode(item) for item in graph["v"])

    def _object(self, graph: dict[str, Any]) -> Any:
        made = _fresh(_class(graph["c"]), self._rng)
        self._objects.append(made)
        known = set(_names(made)) if not attrs.has(type(made)) else {item.name for item in attrs.fields(type(made))}
        found = {name: self.decode(item) for name, item in graph["v"].items()}
        for name in known & found.keys():
            object.__setattr__(made, name, found[name])
        for name in known - found.keys():
            getattr(made, name)  # a field without a default is missed now, not in the middle of a conversation
        return made


def _names(value: Any) -> list[str]:
    names = [field.name for field in attrs.fields(type(value))] if attrs.has(type(value)) else list(vars(value))
    return [name for name in names if name not in _PASSING]


def _class(name: str) -> type:
    module, _, word = name.partition(":")
    if not _MODULE.fullmatch(module):
        raise DamagedError(f"there is no {name}")
    found = getattr(importlib.import_module(PACKAGE + module), word)
    if not inspect.isclass(found) or found.__module__ != PACKAGE + module:
        raise DamagedError(f"{name} is no class of ours")
    return found


def _fresh(kind: type, rng: random.Random) -> Any:
    if not attrs.has(kind):
        return kind(rng) if "rng" in inspect.signature(kind).parameters else kind()
    made = kind.__new__(kind)
    for name, default in _defaults(kind).items():
        object.__setattr__(made, name, default)
    return made


def _defaults(kind: type) -> dict[str, Any]:
    if not attrs.has(kind):
        return {}
    fields = {field.name: field.default for field in attrs.fields(kind) if field.default is not attrs.NOTHING}
    return {
        name: default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
        for name, default in fields.items()
    }
