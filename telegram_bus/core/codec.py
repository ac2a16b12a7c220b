"""Lines to envelopes and back; with `shapes` the only place that knows JSON and camelCase."""

from __future__ import annotations

from typing import Any, Final, cast

import orjson

from telegram_bus.core import envelopes, extensions
from telegram_bus.core.checks import Mismatch
from telegram_bus.core.envelopes import Envelope
from telegram_bus.core.errors import InvalidEnvelope
from telegram_bus.core.jsontext import dumps, loads
from telegram_bus.core.shapes import reader, write_payload, writer

__all__ = ["MAX_PAYLOAD_BYTES", "decode", "dumps", "encode", "kinds", "loads"]

MAX_PAYLOAD_BYTES: Final = 8 * 1024 * 1024
"""The most a handoff's payload may hold, as JSON without white space (protocol section 7)."""

_MAX_GROWTH: Final = 5
"""A line is measured from this fraction of the limit on: written again it grows at most so much (`1e15`: fourfold)."""

_KINDS: Final[tuple[type[Envelope], ...]] = (
    envelopes.Ack,
    envelopes.Register,
    envelopes.Heartbeat,
    envelopes.Disconnect,
    envelopes.CallApi,
    envelopes.ResolveAgentTarget,
    envelopes.RouteAgentMessage,
    envelopes.OfferQueueHandoff,
    envelopes.ForwardMessage,
    envelopes.ForwardEditedMessage,
    envelopes.ForwardCallback,
    envelopes.ForwardReaction,
    envelopes.ForwardQueueHandoff,
    envelopes.ReplaceFollowerTarget,
    extensions.MembersList,
    extensions.StatusGet,
    extensions.OperatorStop,
    extensions.OperatorPurge,
    extensions.OperatorThreads,
    extensions.UpdatesList,
    extensions.UpdatesRetry,
    extensions.UpdatesDrop,
    extensions.FileExpect,
    extensions.FileSend,
    extensions.FileGet,
    extensions.ButtonsKeep,
    extensions.QuestionWait,
    extensions.TypingHold,
    extensions.ActivitySet,
    extensions.SendQueue,
    extensions.UpdateHand,
    extensions.AgentTell,
)
"""Every kind there is. A further one is a class with a `KIND` and a line here; see `shapes.reader` for its fields."""

_BY_NAME: Final = {kind.KIND: kind for kind in _KINDS}


def kinds() -> dict[str, type[Envelope]]:
    """Every kind that can be read and written, with its model."""
    return dict(_BY_NAME)


def decode(line: bytes | bytearray | memoryview) -> Envelope:
    """The envelope on a line (without or with its newline). Raises InvalidEnvelope, whose message names the field."""
    raw = loads(line)
    if type(raw) is not dict:
        raise InvalidEnvelope("an envelope must be a JSON object")
    kind = raw.get("kind")
    model = _BY_NAME.get(kind) if type(kind) is str else None
    if model is None:
        raise InvalidEnvelope("kind is missing" if kind is None else f"kind {_shown(kind)} is unknown")
    try:
        envelope = reader(model)(raw)
    except Mismatch as fault:
        raise InvalidEnvelope(f"{kind}: {'.'.join(fault.path)} {fault.problem}") from None
    if isinstance(envelope, envelopes.QueueHandoff) and len(line) * _MAX_GROWTH > MAX_PAYLOAD_BYTES:
        _check_payload_size(envelope)
    return cast(Envelope, envelope)


def encode(envelope: Envelope) -> bytes:
    """The line of an envelope, with its newline. Raises InvalidEnvelope when it is nested too deeply to be written."""
    cls = type(envelope)
    raw: dict[str, Any] = {"kind": cls.KIND}
    raw.update(writer(cls)(envelope))
    try:
        return orjson.dumps(raw, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return dumps(raw) + b"\n"


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 64 else shown[:64] + "…"


def _check_payload_size(envelope: envelopes.QueueHandoff) -> None:
    size = len(dumps(write_payload(envelope.payload)))
    if size > MAX_PAYLOAD_BYTES:
        raise InvalidEnvelope(f"{envelope.KIND}: payload holds {size} bytes, {MAX_PAYLOAD_BYTES} at most are allowed")
