"""What `leader.json` says of the leader: who it is, where it listens, since when; written once per term."""

from __future__ import annotations

import json
import logging
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from telegram_bus.core.election import Holder
from telegram_bus.core.values import ProtocolIdentity
from telegram_bus.home import Profile, Staged, read_regular, stage

__all__ = ["ENDED", "LeaderRecord", "read_leader", "stage_leader"]

log = logging.getLogger(__name__)

VERSION: Final = 1
RECORD_MAX: Final = 1 << 16

ENDED: Final = "ended"
"""The state of a leader that ended in order and is not missed: a spare does not take its place."""


@frozen(kw_only=True)
class LeaderRecord:
    """One term of one leader; `since` is wall-clock time in seconds, `endpoint` the public path of its socket."""

    holder: Holder
    instance: str
    epoch: int
    endpoint: str
    protocol: ProtocolIdentity
    state: str
    since: float

    @property
    def pid(self) -> int:
        return self.holder.pid


def stage_leader(profile: Profile, record: LeaderRecord) -> Staged:
    """Write what shall replace leader.json, durably; raises OSError."""
    holder, protocol = record.holder, record.protocol
    content = {
        "version": VERSION,
        "pid": holder.pid,
        "birth": holder.birth,
        "bootId": holder.boot_id,
        "pidNamespace": holder.pid_namespace,
        "uid": holder.uid,
        "instance": record.instance,
        "epoch": record.epoch,
        "endpoint": record.endpoint,
        "protocol": {
            "protocolVersion": protocol.protocol_version,
            "runtimeBuild": protocol.runtime_build,
            "capabilities": list(protocol.capabilities),
        },
        "state": record.state,
        "since": record.since,
    }
    return stage(profile.leader_json, json.dumps(content, indent=1).encode() + b"\n")


def read_leader(profile: Profile) -> LeaderRecord | None:
    """The last leader that published itself, living or not; None where there was none, or for rubbish."""
    try:
        return _decode(json.loads(read_regular(profile.leader_json, RECORD_MAX)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, OverflowError) as error:  # the last: a time of 400 digits
        _complain(profile.leader_json, str(error))
        return None


@lru_cache(maxsize=8)
def _complain(path: Path, why: str) -> None:
    """Once for each fault: who waits for a leader looks at its record every few milliseconds."""
    log.warning("%s is of no use: %s", path, why)


def _decode(content: object) -> LeaderRecord:
    if not isinstance(content, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - whatever is wrong with it is the same fault
    version = _field(content, "version", int)
    if version != VERSION:
        raise ValueError(f"its version is {version}, ours {VERSION}")
    protocol = _field(content, "protocol", dict)
    capabilities = _field(protocol, "capabilities", list)
    if not all(isinstance(name, str) for name in capabilities):
        raise ValueError("capabilities has the wrong type")
    birth = content.get("birth")
    return LeaderRecord(
        holder=Holder(
            pid=_field(content, "pid", int),
            birth=birth if isinstance(birth, str) else None,
            boot_id=_field(content, "bootId", str),
            pid_namespace=_field(content, "pidNamespace", int),
            uid=_field(content, "uid", int),
        ),
        instance=_field(content, "instance", str),
        epoch=_field(content, "epoch", int),
        endpoint=_path(_field(content, "endpoint", str)),
        protocol=ProtocolIdentity(
            protocol_version=_field(protocol, "protocolVersion", int),
            runtime_build=_field(protocol, "runtimeBuild", str),
            capabilities=tuple(capabilities),
        ),
        state=_field(content, "state", str),
        since=float(_field(content, "since", (int, float))),
    )


def _path(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise ValueError("endpoint is no absolute path")
    os.fsencode(text)  # raises UnicodeEncodeError, a ValueError
    return text


def _field(content: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    value = content.get(name)
    if kind is int and type(value) is int and abs(value) >= 1 << 63:
        raise ValueError(f"{name} is no number that a leader writes")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} is missing or has the wrong type")  # noqa: TRY004 - as above
    return value
