"""Who speaks: protocol identities and their compatibility, delivery ids, and what a birth id says of a process."""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Final, Literal

from attrs import frozen

from telegram_bus.core.values import ProtocolIdentity

__all__ = [
    "ANNOUNCED",
    "DURABLE_ADMISSION",
    "EXTENSIONS",
    "MAX_SAFE_INTEGER",
    "PROTOCOL_VERSION",
    "QUEUE_HANDOFF",
    "Compatible",
    "Incompatible",
    "Liveness",
    "call_id",
    "compatible",
    "delivery_id",
    "judge_process",
    "ours",
]

PROTOCOL_VERSION: Final = 1

DURABLE_ADMISSION: Final = "durable-follower-admission-v1"
"""The follower journals an update before it acknowledges it."""

QUEUE_HANDOFF: Final = "queue-handoff-v1"
"""Queued work may be handed over (protocol section 7)."""

EXTENSIONS: Final = "telegram-bus-ext-v1"
"""The peer understands the kinds `x.…`."""

ANNOUNCED: Final = (DURABLE_ADMISSION, EXTENSIONS)
"""What we announce; `QUEUE_HANDOFF` joins when we can keep its promise."""

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest magnitude whose neighbours JavaScript still tells apart."""


@frozen(kw_only=True)
class Compatible:
    """The two sides can work together."""


@frozen(kw_only=True)
class Incompatible:
    """They cannot; `missing` is what the remote side lacks (sorted, empty for other reasons)."""

    reason: Literal["missing-identity", "version-mismatch", "missing-capability"]
    missing: tuple[str, ...] = ()


class Liveness(enum.Enum):
    """What is proven about a process; only `DEAD` may take anything from anyone."""

    ALIVE = "alive"
    DEAD = "dead"
    UNVERIFIABLE = "unverifiable"


def ours(version: str, capabilities: Iterable[str] = ANNOUNCED) -> ProtocolIdentity:
    """The identity of this package at `version`, with its capabilities in the order that the wire wants."""
    return ProtocolIdentity(
        protocol_version=PROTOCOL_VERSION,
        runtime_build=f"telegram_bus/{version}",
        capabilities=tuple(sorted(set(capabilities))),
    )


def compatible(local: ProtocolIdentity, remote: ProtocolIdentity | None) -> Compatible | Incompatible:
    """Whether `local` may work with `remote` (protocol section 4); the build never matters."""
    if remote is None:
        return Incompatible(reason="missing-identity")
    if remote.protocol_version != local.protocol_version:
        return Incompatible(reason="version-mismatch")
    if DURABLE_ADMISSION in local.capabilities and DURABLE_ADMISSION not in remote.capabilities:
        return Incompatible(reason="missing-capability", missing=(DURABLE_ADMISSION,))
    return Compatible()


def delivery_id(kind: str, key: str, source_update_id: object) -> str:
    """The id of one update for one recipient: the same for every attempt, whoever makes it.

    Raises ValueError for an empty `key` or a source id that is not a safe integer of at least 0.
    """
    if not key:
        raise ValueError("a delivery id needs a recipient binding key that is not empty")
    if type(source_update_id) is not int or not 0 <= source_update_id <= MAX_SAFE_INTEGER:
        raise ValueError(
            f"a delivery id needs a source update id that is a safe integer of at least 0, not {source_update_id!r}"
        )
    # The order of these keys is part of the protocol, and so is JavaScript's way with lone surrogates (\udxxx).
    facts = {"version": 1, "kind": kind, "recipientBindingKey": key, "sourceUpdateId": source_update_id}
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    return f"telegram-follower-v1-{digest}"


def started_ms(instance_id: str) -> int | None:
    """When a follower's process joined (epoch, ms), by its instance id; None where that does not say it.

    Ours are `key:pid:ms:random`, those of pi-telegram `pid:ms` (protocol section 3).
    """
    found = re.fullmatch(r".*:\d+:(\d{1,15}):[0-9a-f]{8}", instance_id, re.ASCII)  # first: those may be eight digits
    found = found or re.fullmatch(r"(?:.*:)?\d+:(\d{1,15})", instance_id, re.ASCII)
    return int(found[1]) if found else None


def call_id(scope: str, name: str, *which: int | str) -> str:
    """The id of a call that a program has named: in one `scope` (a delivery id, or "") a name stands for one call.

    Where it stands for several, `which` tells those after the first apart.
    """
    text = json.dumps([scope, name, *which], separators=(",", ":"))
    return f"once-v1-{hashlib.sha256(text.encode()).hexdigest()}"


def judge_process(expected: str | None, observed: str | None, *, exists: bool | None) -> Liveness:
    """What is known of the process whose birth id was `expected`.

    `exists` says whether anything has its pid now (None: we cannot tell), `observed` is the birth id of that
    process (None: we cannot tell). Birth ids prove something only when both name a start, or both nothing else.
    """
    if exists is False:
        return Liveness.DEAD
    if exists is None or expected is None or observed is None:
        return Liveness.UNVERIFIABLE
    if ":start:" not in expected or ":start:" not in observed:
        return Liveness.UNVERIFIABLE
    return Liveness.ALIVE if expected == observed else Liveness.DEAD
