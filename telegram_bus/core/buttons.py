"""Buttons: what the data of a button means, who may press it, and what a press comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from telegram_bus.core.errors import InvalidEnvelope
from telegram_bus.core.jsontext import dumps

__all__ = [
    "ANSWER_UNITS",
    "BUTTON_DATA",
    "KEPT",
    "LEADERS",
    "MOST_BUTTONS",
    "MOST_BYTES",
    "QUESTION_UNITS",
    "Kept",
    "Pressed",
    "callback_data",
    "check_content",
    "closed_text",
    "is_short",
    "kept_place",
    "leaders",
    "needs_keeping",
    "pressed",
    "question_message",
    "replied",
    "toast",
]

LEADERS: Final = "tb:"
"""Data that begins so is the bus's own; a program's data never does where our own followers send it."""

KEPT: Final = "tb:k:"
"""Data of a button whose meaning the leader keeps: this, the keyboard's id, a colon and the button's number."""

BUTTON_DATA: Final = "telegram_bus_data"
"""The field that a carried callback query gets beside Telegram's own where the leader kept its button's data."""

ANSWER_UNITS: Final = 200
"""The longest text of an answer to a pressed button (bot-api M12)."""

TELEGRAM_BYTES: Final = 64  # of callback_data (bot-api M11)
MOST_BUTTONS: Final = 100  # in one keyboard, as at Telegram
MOST_BYTES: Final = 64 * 1024
"""What the data of all buttons of a keyboard may hold together, as JSON: it stays in the leader's store for 90 days."""

QUESTION_UNITS: Final = 3_000
"""UTF-16 units of a question: what was answered is written below it, in a message of 4,096."""

ROW_CHARACTERS: Final = 24  # of labels that stand beside each other on a phone
ROW_BUTTONS: Final = 3

ID_CHARS: Final = 43  # of the id of a keyboard: "tb:k:" and ":99" have room beside it
SHOWN: Final = 500  # characters of an answer below its question


class Kept(NamedTuple):
    """A keyboard whose meaning the leader keeps.

    `content` is what `check_content` let through; `holder` the one instance of the owner that may have the answer
    (None: whoever has the owner's key); `place` the (chat, message) that it stands under, once that is known. `answer`
    is what ended it: of a one-time keyboard what was chosen, `{"expired": why}` where it ended in another way.
    """

    id: str
    key: str
    content: dict[str, Any]
    holder: str | None
    place: tuple[int, int] | None
    answer: dict[str, Any] | None
    shown: bool
    taken: bool

    @property
    def question(self) -> dict[str, Any] | None:
        """The `text` of a question and whether it may be answered by any text; None for other keyboards."""
        question: dict[str, Any] | None = self.content.get("question")
        return question


class Pressed(NamedTuple):
    """What a press, or a reply to a question, comes to.

    `toast` is what the person is told at once (None: nothing, or the owner does it), `answer` what ends the keyboard,
    `data` what the owner is given where `deliver` is set.
    """

    toast: str | None
    deliver: bool = False
    data: Any = None
    answer: dict[str, Any] | None = None


def leaders(data: str) -> tuple[str, str] | None:
    """The two halves of `tb:<prefix>:<rest>`; None for other data."""
    if not data.startswith(LEADERS):
        return None
    prefix, _, rest = data.removeprefix(LEADERS).partition(":")
    return prefix, rest


def toast(text: str) -> str:
    """A text as an answer to a pressed button shows it: cut where it is too long."""
    return text if len(text) <= ANSWER_UNITS else text[: ANSWER_UNITS - 1] + "…"


def is_short(data: Any) -> bool:
    """Whether data may travel to Telegram and back as it is."""
    if type(data) is not str or data.startswith(LEADERS):
        return False
    return 1 <= len(data.encode("utf-8", "surrogatepass")) <= TELEGRAM_BYTES


def needs_keeping(markup: Any) -> bool:
    """Whether the leader has to keep what the buttons of a `reply_markup` mean; what is wrong in it Telegram says."""
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return False
    if markup.get("one_time") or markup.get("users") is not None:
        return True
    found = [one["callback_data"] for row in rows for one in row if isinstance(one, dict) and "callback_data" in one]
    return any(not is_short(data) and not (isinstance(data, str) and kept_place(data)) for data in found)


def callback_data(keyboard_id: str, number: int) -> str:
    """What Telegram is given for a button whose meaning is kept."""
    return f"{KEPT}{keyboard_id}:{number}"


def kept_place(data: str) -> tuple[str, int] | None:
    """The keyboard's id and the button's number of such data; None for other data."""
    if not data.startswith(KEPT):
        return None
    keyboard_id, _, number = data.removeprefix(KEPT).rpartition(":")
    if not number.isascii() or not number.isdecimal() or len(number) > 2 or not keyboard_id:
        return None
    return keyboard_id, int(number)


def check_content(keyboard_id: str, content: Any) -> dict[str, Any]:
    """What a follower wants kept; raises ValueError, which says what is wrong with it.

    An object with `buttons` (a list of [label, data], the data any JSON value), and perhaps `one_time` (one press ends
    all of them), `users` (ids of those who may press) and `question` (its `text`, and `allow_text`).
    """
    if not 1 <= len(keyboard_id) <= ID_CHARS or not keyboard_id.isascii() or ":" in keyboard_id:
        raise ValueError(f"the id of a keyboard has 1 to {ID_CHARS} ASCII characters and no colon")
    if type(content) is not dict or not _buttons(content.get("buttons")):
        raise ValueError(f"a keyboard has a list of at most {MOST_BUTTONS} buttons, each [label, data]")
    users, question = content.get("users"), content.get("question")
    if users is not None and not (type(users) is list and all(type(user) is int for user in users)):
        raise ValueError("users must be a list of their ids")
    if users == []:
        raise ValueError("users must name somebody: nobody could press; leave them out for everybody")
    if question is not None and not (type(question) is dict and type(question.get("text")) is str):
        raise ValueError("a question has a text")
    if question is None and not content["buttons"]:
        raise ValueError("a keyboard without a question needs buttons")
    try:
        size = len(dumps(content))
    except (TypeError, InvalidEnvelope) as fault:
        raise ValueError(f"the data of a button must be JSON: {fault}") from fault
    if size > MOST_BYTES:
        raise ValueError(f"the buttons of a message hold {size} bytes of data; {MOST_BYTES} are allowed")
    kept = {"buttons": content["buttons"], "one_time": bool(content.get("one_time")) or question is not None}
    if users is not None:
        kept["users"] = users
    if question is not None:
        kept["question"] = {"text": question["text"], "allow_text": bool(question.get("allow_text"))}
    return kept


def _buttons(value: Any) -> bool:
    if type(value) is not list or len(value) > MOST_BUTTONS:
        return False
    return all(type(one) is list and len(one) == 2 and type(one[0]) is str for one in value)


def pressed(
    kept: Kept | None, number: int, *, user: Mapping[str, Any], owner: str | None, update_id: int, away: str | None
) -> Pressed:
    """What the press of button `number` comes to.

    `owner` is who sent the message under which it stands (None: not known), `away` the owner's name where it is not
    here.
    """
    if kept is None or number >= len(kept.content["buttons"]):
        return Pressed("This button has expired; ask its agent anew.")
    if owner is not None and owner != kept.key:
        return Pressed("This button is not valid here.")
    if "users" in kept.content and user.get("id") not in kept.content["users"]:
        return Pressed("This button is for somebody else.")
    if kept.answer is not None:
        return Pressed(_ended(kept.answer, update_id))
    label, data = kept.content["buttons"][number]
    if not kept.content["one_time"]:
        return Pressed(None, deliver=True, data=data)
    answer = {"update_id": update_id, "number": number, "label": label, "data": data, "by": dict(user)}
    if kept.question is None:
        return Pressed(None, deliver=True, data=data, answer=answer)
    return Pressed(toast(f"✔ {label}" if away is None else f"✔ {label} — {away} is away; it is kept."), answer=answer)


def replied(kept: Kept, text: str, *, user: Mapping[str, Any], update_id: int) -> Pressed | None:
    """What a text that replies to a question comes to; None: it is no answer, but a message like any other."""
    question = kept.question
    if kept.answer is not None or question is None or not question["allow_text"] or not text.strip():
        return None
    if "users" in kept.content and user.get("id") not in kept.content["users"]:
        return None
    return Pressed(None, answer={"update_id": update_id, "label": text, "by": dict(user)})


def question_message(keyboard_id: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the message that asks a question; `content` as it is kept."""
    labels = [label for label, _ in content["buttons"]]
    question = content["question"]
    hint = "" if not question["allow_text"] else "\n\n↩ Reply to this message to answer."
    params: dict[str, Any] = {"text": question["text"] + hint}
    if labels:
        keys = [{"text": label, "callback_data": callback_data(keyboard_id, at)} for at, label in enumerate(labels)]
        short = len(labels) <= ROW_BUTTONS and sum(map(len, labels)) <= ROW_CHARACTERS
        params["reply_markup"] = {"inline_keyboard": [keys] if short else [[key] for key in keys]}
    return params


def closed_text(kept: Kept) -> str:
    """A question with what became of it."""
    assert kept.question is not None
    assert kept.answer is not None
    text: str = kept.question["text"]
    if "expired" in kept.answer:
        return f"{text}\n\n⌛ {kept.answer['expired']}"
    label = kept.answer["label"]
    shown = label if len(label) <= SHOWN else label[: SHOWN - 1] + "…"
    lost = f"\n⌛ {kept.answer['lost']}" if "lost" in kept.answer else ""
    return f"{text}\n\n✔ {shown} — {_name(kept.answer['by'])}{lost}"


def _ended(answer: Mapping[str, Any], update_id: int) -> str | None:
    if answer.get("update_id") == update_id:
        return None  # the very press that ended it, once more
    if "expired" in answer:
        return toast(f"This has expired: {answer['expired']}")
    return toast(f"Already chosen: {answer['label'][:100]} ({_name(answer['by'])})")


def _name(user: Mapping[str, Any]) -> str:
    names: Sequence[Any] = (user.get("first_name"), user.get("username"), user.get("id"))
    return next((str(name)[:60] for name in names if name), "somebody")
