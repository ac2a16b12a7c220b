"""The envelope kinds that this project adds (`x.<noun>.<verb>`), for peers that announce `telegram-bus-ext-v1`."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from telegram_bus.core.envelopes import Envelope

__all__ = ["Extension", "MembersList", "OperatorStop", "StatusGet"]


@frozen(kw_only=True)
class Extension(Envelope):
    """A request of ours: in nobody's name, so it carries neither instance nor generation."""


@frozen(kw_only=True)
class MembersList(Extension):
    """Asks for the live members, at once or (both fields given) when their revision has passed `after_revision`.

    `wait_ms` is the longest time to wait for that, in milliseconds; the leader waits 25 s at most.
    """

    KIND: ClassVar[str] = "x.members.list"

    after_revision: int | None = None
    wait_ms: int | None = None


@frozen(kw_only=True)
class StatusGet(Extension):
    """Asks for the leader's state."""

    KIND: ClassVar[str] = "x.status.get"


@frozen(kw_only=True)
class OperatorStop(Extension):
    """Asks the leader to end in order; needs the operator's secret."""

    KIND: ClassVar[str] = "x.operator.stop"
