"""Playing a scenario in a running sandbox: people's doings, expectations, and the bot's answers as they come."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any, Final

from telegram_bus.sandbox.client import Client, SandboxError
from telegram_bus.sandbox.mirror import Mirror
from telegram_bus.sandbox.script import TIMING, ScriptError, Step

__all__ = ["FailedError", "Player"]

Json = dict[str, Any]

WITHIN: Final = 10.0  # seconds that an expectation waits, unless told otherwise
SLICE: Final = 0.25  # seconds of one look, so that the end of the bot's program is noticed


class FailedError(Exception):
    """The bot did not do what was expected; `instead` is what was seen."""

    def __init__(self, line: int, expected: Json, instead: Any) -> None:
        super().__init__(f"line {line}: expected {json.dumps(expected, ensure_ascii=False)}")
        self.line, self.expected, self.instead = line, expected, instead


class Player:
    """Plays steps in a running sandbox. `emit` gets every line of the output, `check` raises when it is no use."""

    def __init__(self, client: Client, emit: Callable[[Json], None], check: Callable[[], None]) -> None:
        self._client, self._emit, self._check = client, emit, check
        self._mirror = Mirror()
        self._began = time.monotonic()
        self._names: dict[str, Any] = {}
        self._fresh: list[Json] = []  # what the bot wrote or edited since a person last did something
        self._looks: dict[tuple[int, int], Json] = {}  # how the bot's messages were shown last
        self._mark = 0  # the last entry of the record at that time
        state = client.state()
        self._mirror.reset(state)
        self._people = {user["first_name"].lower(): user["id"] for user in state["users"]}
        self._people["owner"] = state["owner_id"]

    def wait_for_bot(self, seconds: float) -> None:
        """Wait until the bot polls; raises FailedError."""
        end = time.monotonic() + seconds
        while not self._client.record(kind="poll", newest=1):
            self._look(0.05)
            if time.monotonic() >= end:
                raise FailedError(0, {"expect": "call", "method": "getUpdates", "within": seconds}, [])

    def play(self, steps: list[Step]) -> None:
        """Play all steps; raises FailedError, and ScriptError when a step is not possible."""
        self._began = time.monotonic()
        for step in steps:
            now = time.monotonic()
            self._pause(max(self._began + step.fields.get("at", 0), now + step.fields.get("wait", 0)))
            if step.is_doing:
                self._do(step)
            elif "expect" in step.fields:
                self._expect(step)
        self._look(0)

    # -- people ----------------------------------------------------------------------------------------

    def _do(self, step: Step) -> None:
        self._look(0)
        self._fresh.clear()
        self._mark = (self._client.record(newest=1) or [{"n": 0}])[-1]["n"]
        fields = {name: value for name, value in step.fields.items() if name not in TIMING | {"do", "as"}}
        try:
            result = self._client.perform(step.fields["do"], **self._meant(step, fields))
        except SandboxError as error:
            raise ScriptError(f"line {step.line}: {error}") from error
        if "as" in step.fields:
            self._names[step.fields["as"]] = result

    def _meant(self, step: Step, fields: Json) -> Json:
        """The control's fields: names of people, chats, threads and messages become ids."""
        meant = {name: value for name, value in fields.items() if name not in _NAMED}
        meant |= self._place(step, fields)
        if "message" in fields:
            message = self._named(step, fields["message"], "message_id")
            meant |= {"message_id": message["message_id"], "chat_id": message["chat"]["id"]}
            if "button" in fields:
                meant["data"] = _data_of(step, message, fields["button"])
        if "reply_to" in fields:
            meant["reply_to"] = self._named(step, fields["reply_to"], "message_id")["message_id"]
        return meant

    def _place(self, step: Step, fields: Json) -> Json:
        place: Json = {}
        if "user" in fields:
            user = self._people.get(str(fields["user"]).lower())
            if user is None:
                raise ScriptError(f"line {step.line}: nobody is called {fields['user']!r}: {', '.join(self._people)}")
            place["user_id"] = user
        if "chat" in fields or "thread" in fields:
            place["chat_id"] = self._chat(step, fields, place.get("user_id", self._client.chat_id))
        if "thread" in fields:
            place["thread_id"] = self._thread(step, fields["thread"], place["chat_id"])
        return place

    def _chat(self, step: Step, fields: Json, private: int) -> int:
        chats = {"private": private, "forum": self._client.forum_id, "group": self._client.group_id}
        chat = fields.get("chat", "private")
        if isinstance(chat, int):
            return chat
        if chat not in chats:
            raise ScriptError(f"line {step.line}: chat is one of {', '.join(chats)}, or an id")
        return chats[chat]

    def _thread(self, step: Step, thread: Any, chat_id: int) -> int:
        if isinstance(thread, int):
            return thread
        if thread in self._names:
            return int(self._named(step, thread, "thread_id")["thread_id"])
        for topic in self._mirror.topics(chat_id):
            if topic["name"] == thread:
                return int(topic["thread_id"])
        raise ScriptError(f"line {step.line}: there is no thread {thread!r}")

    def _named(self, step: Step, name: Any, field: str) -> Json:
        found = self._names.get(name)
        if not isinstance(found, dict) or field not in found:
            raise ScriptError(f'line {step.line}: no earlier step has "as": {json.dumps(name)} with such a result')
        if field == "message_id":  # as it looks now
            chat = found["chat"]["id"]
            return next((item for item in self._mirror.messages(chat) if item["message_id"] == found[field]), found)
        return found

    # -- the bot ---------------------------------------------------------------------------------------

    def _expect(self, step: Step) -> None:
        fields = step.fields
        kind = fields["expect"]
        if kind == "nothing":
            self._pause(time.monotonic() + fields.get("for", 1.0))
            if unwanted := self._answers(step):
                raise FailedError(step.line, fields, [_shown(message) for message in unwanted])
            return
        seek = {"message": self._seek_message, "call": self._seek_call, "topic": self._seek_topic}[kind]
        end = time.monotonic() + fields.get("within", WITHIN)
        while (found := seek(step)) is None:
            left = end - time.monotonic()
            if left <= 0:
                raise FailedError(step.line, fields, self._instead(kind))
            self._look(min(left, SLICE))
        if "as" in fields:
            self._names[fields["as"]] = found

    def _answers(self, step: Step) -> list[Json]:
        place = self._place(step, {"chat": "private", **step.fields})
        return [
            message
            for message in self._fresh
            if message["chat"]["id"] == place["chat_id"]
            and place.get("thread_id", message.get("message_thread_id", 0)) == message.get("message_thread_id", 0)
        ]

    def _seek_message(self, step: Step) -> Json | None:
        fields = step.fields
        named = "message" in fields
        wanted = [self._named(step, fields["message"], "message_id")] if named else self._answers(step)
        return next((message for message in wanted if not _service(message) and _fits(message, fields)), None)

    def _seek_call(self, step: Step) -> Json | None:
        fields = step.fields
        wanted = {name: fields[name] for name in ("method", "text", "ok") if name in fields}
        params = {f"param.{name}": value for name, value in fields.get("params", {}).items()}
        found = self._client.record(after=self._mark, **wanted, **params)
        done = [entry for entry in found if entry["ok"] is not None]
        return done[-1] if len(done) >= fields.get("count", 1) else None

    def _seek_topic(self, step: Step) -> Json | None:
        place = self._place(step, {"chat": "private", **step.fields})
        topics = self._mirror.topics(place["chat_id"])
        return next((topic for topic in topics if topic["name"] == step.fields["name"]), None)

    def _instead(self, kind: str) -> list[Any]:
        if kind == "call":
            calls = self._client.record(after=self._mark, kind="call")
            return [{name: entry[name] for name in ("method", "params", "ok", "description")} for entry in calls]
        return [_shown(message) for message in self._fresh]

    # -- what happens ----------------------------------------------------------------------------------

    def _pause(self, until: float) -> None:
        self._look(0)
        while (left := until - time.monotonic()) > 0:
            self._look(min(left, SLICE))

    def _look(self, seconds: float) -> None:
        """Follow what happens, for so long at most, and print what the bot does."""
        self._check()
        news = self._client.changes(self._mirror.seq, seconds)
        if news["reset"]:
            self._mirror.reset(self._client.state())
        for change in news["changes"]:
            self._mirror.apply(change)
            if (event := self._event(change)) is not None:
                self._emit({"t": round(time.monotonic() - self._began, 3), **event})

    def _event(self, change: Json) -> Json | None:
        match change["kind"]:
            case "message" | "edit" if change["message"]["by_bot"]:
                return self._written(change["kind"], change["message"])
            case "delete":
                return {"event": "delete", "chat_id": change["chat_id"], "message_ids": change["message_ids"]}
            case "callback_answer":
                return {"event": "callback_answer", "text": change["text"], "show_alert": change["show_alert"]}
        return None

    def _written(self, kind: str, message: Json) -> Json | None:
        key, shown = (message["chat"]["id"], message["message_id"]), _shown(message)
        if self._looks.get(key) == shown:
            return None  # a reaction, which is not the bot's doing
        self._looks[key] = shown
        self._fresh = [item for item in self._fresh if (item["chat"]["id"], item["message_id"]) != key]
        self._fresh.append(message)
        return {"event": kind, **shown}


_NAMED = frozenset({"user", "chat", "thread", "message", "button", "reply_to"})


def _said(message: Json) -> str:
    return str(message.get("text", message.get("caption", "")))


def _labels(message: Json) -> list[list[str]]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [[button["text"] for button in row] for row in rows]


def _fits(message: Json, fields: Json) -> bool:
    said = _said(message)
    return (
        fields.get("text", "") in said
        and fields.get("is", said) == said
        and re.search(fields.get("like", ""), said) is not None
        and ("button" not in fields or any(fields["button"] in row for row in _labels(message)))
    )


def _data_of(step: Step, message: Json, button: str) -> str:
    for row in message.get("reply_markup", {}).get("inline_keyboard", []):
        for item in row:
            if item["text"] == button and "callback_data" in item:
                return str(item["callback_data"])
    raise ScriptError(f"line {step.line}: the message has no button {button!r}, only {_labels(message)}")


def _shown(message: Json) -> Json:
    """What is printed of a message: the parts that a test compares."""
    shown: Json = {
        "chat_id": message["chat"]["id"],
        "thread_id": message.get("message_thread_id", 0),
        "message_id": message["message_id"],
        "text": _said(message),
    }
    if buttons := _labels(message):
        shown["buttons"] = buttons
    others = message.keys() & {"document", "photo", "video", "audio", "voice", "sticker", "animation", "poll"}
    if others:
        shown["with"] = sorted(others)
    if service := _service(message):
        shown["service"] = service
    return shown


def _service(message: Json) -> str:
    return next((name for name in sorted(message) if name.startswith(("forum_topic_", "pinned_", "new_chat_"))), "")
