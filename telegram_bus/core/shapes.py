"""Functions that read and write each model as JSON objects, made from its types and from the tables here."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.fns import identity
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from telegram_bus.core import checks, envelopes, extensions, payloads, values
from telegram_bus.core.checks import Check, Mismatch

__all__ = ["Writer", "reader", "write_payload", "writer"]

Writer = Callable[[Any], dict[str, Any]]

_positive = checks.safe_integer(1)
_natural = checks.safe_integer(0)
_safe = checks.safe_integer()
_short = checks.bounded_text(1, 256)
_not_empty = checks.bounded_text(1)

_CONSTRAINED: Final[Mapping[type, Mapping[str, Check]]] = {
    values.Registration: {
        "slot": checks.matching("[A-Z]", "one letter A to Z"),
        "session_generation": _positive,
        "process_birth_id": _not_empty,
    },
    values.Delivery: {
        "delivery_id": checks.matching("telegram-follower-v1-[0-9a-f]{64}", "a delivery id"),
        "source_update_id": _natural,
        "recipient_binding_key": _not_empty,
    },
    values.AgentMessage: {
        "target": checks.target_with_both,
        "message_id": checks.positive_integer,
        "text": checks.filled_text,
    },
    envelopes.CallApi: {"call_id": _short},
    envelopes.ReplaceFollowerTarget: {
        "target": checks.target_with_both,
        "old_target": checks.target_with_both,
    },
    envelopes.QueueHandoff: {
        "donor_process_id": _positive,
        "donor_process_birth_id": _short,
        "donor_session_generation": _positive,
        "donor_acquisition_id": _short,
        "donor_acquired_at_ms": _natural,
        "handoff_token": checks.bounded_text(32, 256),
    },
    extensions.AgentTell: {
        "message_id": checks.positive_integer,
        "text": checks.filled_text,
    },
    extensions.FilePart: {
        "field": checks.matching("[a-z][a-z0-9_]{0,31}", "the name of a field"),
        "name": checks.bounded_text(1, 256),
    },
    extensions.FileSend: {
        "params": checks.json_object,
    },
    extensions.FileGet: {
        "file_id": checks.bounded_text(1, 512),
    },
    payloads.AdmissionReceipt: {
        "receipt_id": _not_empty,
        "source_update_ids": checks.ascending_ids,
        "journal_binding_key": checks.filled_text,
    },
    payloads.Work: {
        "chat_id": _safe,
        "reply_to_message_id": _safe,
        "queue_order": _safe,
        "lane_order": _safe,
        "source_message_ids": checks.array_of(_safe),
    },
}
"""Fields that hold less than their type does."""

_STRICT: Final[Mapping[type, frozenset[str]]] = {
    values.Registration: frozenset({"target"}),
    envelopes.CallApi: frozenset({"call_id"}),
    envelopes.ReplaceFollowerTarget: frozenset({"old_target"}),
}
"""Optional fields that make the whole envelope invalid when they are ill-typed; of the payloads, all are."""

_SCALARS: Final[Mapping[Any, Check]] = {
    str: checks.text,
    bool: checks.boolean,
    int: checks.integer,
    Any: checks.anything,
    values.Number: checks.number,
    tuple[Any, ...]: checks.array,
    values.ProtocolIdentity: checks.protocol_identity,
    values.Target: checks.target,
    values.AgentSelector: checks.agent_selector,
}

_MAX_RECEIPTS: Final = 256

_ALL_STRICT: Final = (payloads.Work, payloads.AdmissionReceipt)

_readers: Final[dict[type, Check]] = {}
_writers: Final[dict[type, Writer]] = {}
_converter: Final = cattrs.Converter(detailed_validation=False)


def reader(cls: type) -> Check:
    """A function that reads an object into `cls`, made when it is first asked for: making all takes 50 ms."""
    made = _readers.get(cls)
    if made is None:
        made = _readers[cls] = _make_reader(cls)
    return made


def writer(cls: type) -> Writer:
    """A function that writes a `cls`, made when it is first asked for."""
    made = _writers.get(cls)
    if made is None:
        made = _writers[cls] = _make_writer(cls)
    return made


def _make_reader(cls: type) -> Check:
    """What `reader` returns.

    A field's check follows from its type, less what `_CONSTRAINED` says; a field with a default is dropped when it
    is ill-typed, unless `_STRICT` names it.
    """
    overrides: dict[str, Any] = {}
    strict = _STRICT.get(cls, frozenset())
    for attribute in _fields(cls):
        check = _constraint(cls, attribute.name) or _check_for(attribute.type)
        optional = attribute.default is None and attribute.name not in strict and not issubclass(cls, _ALL_STRICT)
        name = _camel(attribute.name)
        overrides[attribute.name] = override(
            rename=name, struct_hook=_dropping(check) if optional else _naming(name, check)
        )
    structure: Callable[[Any, type], Any] = make_dict_structure_fn(
        cls, _converter, _cattrs_detailed_validation=False, **overrides
    )

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch("must be an object")
        try:
            return structure(value, cls)
        except KeyError as fault:
            raise Mismatch("is missing", str(fault.args[0])) from None

    return read


def _make_writer(cls: type) -> Writer:
    """What `writer` returns: fields that hold their default are left out (but never capabilities)."""
    overrides: dict[str, Any] = {
        attribute.name: override(
            rename=_camel(attribute.name),
            unstruct_hook=_writer_for(attribute.type),
            omit_if_default=attribute.name != "capabilities",
        )
        for attribute in _fields(cls)
    }
    return make_dict_unstructure_fn(cls, _converter, **overrides)


def write_payload(payload: payloads.Payload) -> dict[str, Any]:
    """A handoff's payload as a JSON object."""
    return writer(type(payload))(payload)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _fields(cls: type) -> tuple[attrs.Attribute[Any], ...]:
    attrs.resolve_types(cls)
    return tuple(attrs.fields(cls))


def _plain(annotation: Any) -> Any:
    """The type of a field, without None."""
    if get_origin(annotation) in (Union, types.UnionType):
        kept = [one for one in get_args(annotation) if one is not type(None)]
        if len(kept) == 1:
            return kept[0]
        return Union[tuple(kept)]  # noqa: UP007 - made of a list
    return annotation


def _check_for(annotation: Any) -> Check:
    """The check that a type asks for."""
    annotation = _plain(annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if annotation == values.Number:
        return checks.number
    if annotation == payloads.Payload:
        return _read_payload
    if annotation == payloads.Content:
        return _read_content
    if get_origin(annotation) is Literal:
        return checks.choice(*get_args(annotation))
    if get_origin(annotation) is tuple:
        return checks.array_of(_check_for(get_args(annotation)[0]))
    return reader(annotation)


def _constraint(cls: type, name: str) -> Check | None:
    for base in cls.__mro__:
        if name in _CONSTRAINED.get(base, {}):
            return _CONSTRAINED[base][name]
    return None


def _naming(name: str, check: Check) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _type: Any) -> Any:
        try:
            return check(value)
        except Mismatch as fault:
            raise fault.inside(name) from None

    return hook


def _dropping(check: Check) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _type: Any) -> Any:
        try:
            return check(value)
        except Mismatch:
            return None

    return hook


def _writer_for(annotation: Any) -> Callable[[Any], Any]:
    annotation = _plain(annotation)
    if annotation == payloads.Payload:
        return write_payload
    if annotation == payloads.Content:
        return _write_content
    if get_origin(annotation) is tuple and get_args(annotation)[0] is not Any:
        write = _writer_for(get_args(annotation)[0])
        return identity if write is identity else lambda items: [write(item) for item in items]
    return writer(annotation) if attrs.has(annotation) else identity


def _read_payload(value: Any) -> payloads.Payload:
    kind = value.get("kind") if type(value) is dict else None
    model = _PAYLOADS.get(kind) if type(kind) is str else None
    if model is None:
        raise Mismatch("must be an object whose kind is 'prompt' or 'control'")
    payload: payloads.Payload = reader(model)(value)
    if not 1 <= len(payload.admission_receipts) <= _MAX_RECEIPTS:
        raise Mismatch(f"must be an array of 1 to {_MAX_RECEIPTS} values", "admissionReceipts")
    for index, receipt in enumerate(payload.admission_receipts):
        if receipt.queue_kind != payload.kind:
            raise Mismatch(f"must be {payload.kind!r}", "admissionReceipts", str(index), "queueKind")
    return payload


def _read_content(value: Any) -> payloads.Content:
    kind = value.get("type") if type(value) is dict else None
    model = _CONTENTS.get(kind) if type(kind) is str else None
    if model is None:
        raise Mismatch("must be an object whose type is 'text' or 'image'")
    content: payloads.Content = reader(model)(value)
    return content


def _write_content(content: payloads.Content) -> dict[str, Any]:
    return writer(type(content))(content)


_PAYLOADS: Final[Mapping[Any, type]] = {"prompt": payloads.Prompt, "control": payloads.Control}
_CONTENTS: Final[Mapping[Any, type]] = {"text": payloads.TextContent, "image": payloads.ImageContent}
