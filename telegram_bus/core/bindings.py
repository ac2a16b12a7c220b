"""What is known of threads: who has which, which are being made, which shall go, and whether one is there."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = ["Binding", "Changes", "CleanUp", "Creation", "Gone", "How", "Verdict", "says_gone", "verdict_of"]

How = Literal["close", "delete"]

Verdict = Literal["there", "gone", "unknown"]

_THERE: Final = ("topic_not_modified",)
_GONE: Final = ("message thread not found", "topic_id_invalid", "topic_deleted")


class Binding(NamedTuple):
    """A follower's key and its thread.

    `holder` is the running process (instance id) that had it last; `by_person`: a person chose the name; `gone_ms`:
    a person deleted the thread, as was found out then; `remade_ms`: it was made anew for the present holder then.
    """

    key: str
    chat_id: int
    thread_id: int
    name: str
    since_ms: int
    holder: str | None = None
    by_person: bool = False
    closed: bool = False
    gone_ms: int | None = None
    remade_ms: int | None = None


class Creation(NamedTuple):
    """A thread that Telegram was asked for, while nobody knows whether it was made."""

    key: str
    chat_id: int
    name: str
    begun_ms: int
    holder: str | None = None


class CleanUp(NamedTuple):
    """A thread that shall be closed or deleted: without such a row nothing ever is. `why` is for people."""

    chat_id: int
    thread_id: int
    key: str
    how: How
    why: str
    since_ms: int


class Gone(NamedTuple):
    """A row to be deleted: `of` names its kind, `row` is it."""

    row: Binding | Creation | CleanUp


Changes = list[Binding | Creation | CleanUp | Gone]


def verdict_of(refusal: str | None) -> Verdict:
    """What Telegram's answer to editForumTopic with the name that a thread has proves (bot-api T10; None: no refusal).

    Any other refusal proves nothing: then the thread is kept.
    """
    if refusal is None:
        return "there"
    text = refusal.casefold()
    if any(sign in text for sign in _THERE):
        return "there"
    return "gone" if says_gone(refusal) else "unknown"


def says_gone(refusal: str) -> bool:
    """Whether Telegram says that there is no such thread (bot-api T5, T10)."""
    text = refusal.casefold()
    return any(sign in text for sign in _GONE)
