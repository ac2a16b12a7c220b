"""The work that a queue handoff carries (protocol section 7): a prompt or a control, with its receipts."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from telegram_bus.core.values import Target

__all__ = [
    "AdmissionReceipt",
    "Attachment",
    "Content",
    "Control",
    "ImageContent",
    "Payload",
    "Prompt",
    "TextContent",
    "TransportStamp",
    "Work",
]


@frozen(kw_only=True)
class AdmissionReceipt:
    """Proof that the updates `source_update_ids` (strictly ascending) were admitted as one item of a queue."""

    queue_kind: Literal["prompt", "control"]
    receipt_id: str
    source_update_ids: tuple[int, ...]
    journal_binding_key: str | None = None


@frozen(kw_only=True)
class TransportStamp:
    """The transport that the work came through."""

    profile: str
    generation: str


@frozen(kw_only=True)
class Attachment:
    """A file that belongs to a prompt."""

    path: str
    file_name: str


@frozen(kw_only=True)
class TextContent:
    """A part of a prompt that is text."""

    type: Literal["text"]
    text: str


@frozen(kw_only=True)
class ImageContent:
    """A part of a prompt that is a picture; `data` is base64."""

    type: Literal["image"]
    data: str
    mime_type: str


Content = TextContent | ImageContent


@frozen(kw_only=True)
class Work:
    """What every payload has."""

    chat_id: int
    reply_to_message_id: int
    queue_order: int
    lane_order: int
    status_summary: str
    admission_receipts: tuple[AdmissionReceipt, ...]
    target: Target | None = None
    transport_stamp: TransportStamp | None = None
    guest_query_id: str | None = None


@frozen(kw_only=True)
class Prompt(Work):
    """A prompt that waits in a queue."""

    kind: Literal["prompt"]
    queue_lane: Literal["priority", "default"]
    source_message_ids: tuple[int, ...]
    queued_attachments: tuple[Attachment, ...]
    content: tuple[Content, ...]
    history_text: str
    priority_emoji: str | None = None
    reaction_suppression_emoji: str | None = None
    voice_reply_preferred: bool | None = None
    voice_reply_required: bool | None = None


@frozen(kw_only=True)
class Control(Work):
    """A control that waits in a queue."""

    kind: Literal["control"]
    queue_lane: Literal["control"]
    control_type: Literal["status", "model"]


Payload = Prompt | Control
