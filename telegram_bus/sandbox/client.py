"""Acting as the people of a running sandbox and looking at what the bot does. Standard library only, and blocking."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from telegram_bus.sandbox.client_people import People
from telegram_bus.sandbox.client_trouble import Trouble
from telegram_bus.sandbox.mirror import Mirror

__all__ = ["Client", "SandboxError"]

Json = dict[str, Any]

WITHIN = 10.0  # seconds that a wait takes at most, unless told otherwise
RETRY = 0.02  # seconds between tries while connections are refused
SLICE = 20.0  # seconds of one waiting request
# What a message shows that has no text and is no service message.
CONTENTS = frozenset(
    "animation audio contact dice document location photo poll sticker venue video video_note voice".split()
)


class SandboxError(Exception):
    """The sandbox does not run, or refuses what a person wants to do; the message says why."""


class Client(People, Trouble):
    """People and eyes of a sandbox. May be used from several threads.

    `api_root` and `token` are what a bot needs; `chat_id` is the owner's private chat (and the owner's user id),
    `forum_id` and `group_id` two groups, `page` the address of the chat page. Whatever a person does is done by the
    owner in their private chat unless `user_id` or `chat_id` say otherwise.
    """

    api_root: str
    page: str
    token: str
    chat_id: int
    forum_id: int
    group_id: int
    bot_id: int
    bot_username: str
    pid: int

    def __init__(self, address: Json) -> None:
        """`address` is the object that `telegram-bus sandbox --json` prints."""
        self._lock = threading.Lock()
        self._mirror = Mirror()
        self._move_in(address)

    # -- people ----------------------------------------------------------------------------------------

    def say(self, text: str, *, thread_id: int = 0, reply_to: int = 0, **who: int) -> Json:
        """A person writes; returns the message. `who`: user_id, chat_id."""
        return self._message("say", text=text, thread_id=thread_id, reply_to=reply_to, **who)

    def edit(self, message: Json, text: str, **who: int) -> Json:
        """A person edits a message of theirs; returns it."""
        return self._message("edit", text=text, **_of(message), **who)

    def delete(self, message: Json, **who: int) -> None:
        """A person deletes a message."""
        self._do("delete", **_of(message), **who)

    def press(self, message: Json, button: str, *, accessible: bool = True, **who: int) -> str:
        """A person presses a button, named by its label or its data; returns the id of the callback query.

        Of a message that is not `accessible` to the server any more the bot learns only where it was.
        """
        rows = message.get("reply_markup", {}).get("inline_keyboard", [])
        data = [
            item["callback_data"] for row in rows for item in row if item["text"] == button and "callback_data" in item
        ]
        return str(self._do("press", data=data[0] if data else button, accessible=accessible, **_of(message), **who))

    def react(self, message: Json, emoji: str, **who: int) -> None:
        """A person reacts to a message; an empty emoji takes it back."""
        self._do("react", emoji=emoji, **_of(message), **who)

    def create_topic(self, name: str = "", **who: int) -> int:
        """A person makes a topic; returns its thread id."""
        return int(self._do("topics/create", name=name, **who)["thread_id"])

    def rename_topic(self, thread_id: int, name: str, **who: int) -> None:
        """A person renames a topic."""
        self._do("topics/rename", thread_id=thread_id, name=name, **who)

    def close_topic(self, thread_id: int, **who: int) -> None:
        """A person closes a topic of a forum."""
        self._do("topics/close", thread_id=thread_id, **who)

    def reopen_topic(self, thread_id: int, **who: int) -> None:
        """A person reopens a topic of a forum."""
        self._do("topics/reopen", thread_id=thread_id, **who)

    def prune_topic(self, thread_id: int, **who: int) -> None:
        """A topic is not found for the bot any more, while people can still write there."""
        self._do("topics/prune", thread_id=thread_id, **who)

    def delete_topic(self, thread_id: int, **who: int) -> None:
        """A person deletes a topic with its messages."""
        self._do("topics/delete", thread_id=thread_id, **who)

    def block(self, *, blocked: bool = True, **who: int) -> None:
        """A person blocks or unblocks the bot."""
        self._do("block", blocked=blocked, **who)

    def settings(self, **chosen: bool) -> Json:
        """Switch threaded_mode, users_create_topics, privacy, topic_cache; returns all settings."""
        return self._message("settings", **chosen)

    # -- looking ---------------------------------------------------------------------------------------

    def state(self) -> Json:
        """Everything: bot, users, chats with topics and messages, settings."""
        return self.get("/sandbox/state")

    def messages(
        self, *, thread_id: int | None = None, chat_id: int | None = None, by_bot: bool | None = None
    ) -> list[Json]:
        """The messages of a chat as they are now, service messages among them; `thread_id` 0 is outside all topics."""
        self._pull(0.0)
        with self._lock:
            return self._mirror.messages(chat_id or self.chat_id, thread_id, by_bot)

    def topics(self, *, chat_id: int | None = None) -> list[Json]:
        """The topics of a chat: thread_id, name, closed, …"""
        self._pull(0.0)
        with self._lock:
            return self._mirror.topics(chat_id or self.chat_id)

    def wait_for_message(
        self,
        text: str | None = None,
        *,
        thread_id: int | None = None,
        chat_id: int | None = None,
        after: Json | None = None,
        where: Callable[[Json], bool] | None = None,
        by_bot: bool = True,
        within: float = WITHIN,
    ) -> Json:
        """The first message, of the bot unless told otherwise, whose text or caption contains `text`.

        `after` is a message that it has to come after, `where` looks at the whole message. Raises TimeoutError, which
        shows what was said instead.
        """

        def wanted() -> Json | None:
            for message in self._mirror.messages(chat_id or self.chat_id, thread_id, by_bot):
                said = message.get("text") or message.get("caption") or ""
                late = after is None or message["message_id"] > after["message_id"]
                if (
                    late
                    and (said or not CONTENTS.isdisjoint(message))
                    and (text is None or text in said)
                    and (where is None or where(message))
                ):
                    return message
            return None

        return self._wait(wanted, f"no message with {text!r}", within, chat_id or self.chat_id)

    def wait_for_topic(self, name: str, *, chat_id: int | None = None, within: float = WITHIN) -> int:
        """The thread id of the first topic called `name`; raises TimeoutError."""

        def wanted() -> Json | None:
            topics = self._mirror.topics(chat_id or self.chat_id)
            return next((topic for topic in topics if topic["name"] == name), None)

        return int(self._wait(wanted, f"no topic {name!r}", within, chat_id or self.chat_id)["thread_id"])

    def record(self, **wanted: Any) -> list[Json]:
        """Calls and polls: method, params, began, ended, ok, code, description, result, disconnected.

        `wanted`: kind ("call", "poll"), method, ok, open, disconnected, text, after; any other name is a parameter
        of the call (`chat_id=…`, `message_thread_id=…`).
        """
        entries: list[Json] = self.get("/sandbox/record?" + _query(wanted))["entries"]
        return entries

    def updates(self) -> list[Json]:
        """The newest 1,000 updates that were made for the bot, whether it fetched them or not."""
        updates: list[Json] = self.get("/sandbox/updates")["updates"]
        return updates

    def wait_for_record(self, count: int = 1, *, within: float = WITHIN, **wanted: Any) -> list[Json]:
        """Wait until `count` entries match, as in `record`; raises TimeoutError."""
        end = time.monotonic() + within
        while True:
            left = max(0.0, end - time.monotonic())
            query = _query(wanted) + "&" + urlencode({"count": count, "wait": min(left, SLICE)})
            found = self.get("/sandbox/record?" + query)
            if found["enough"]:
                entries: list[Json] = found["entries"]
                return entries
            if left == 0.0:
                raise TimeoutError(f"{len(found['entries'])} of {count} entries within {within} s: {wanted}")

    def changes(self, after: int, wait: float = 0.0) -> Json:
        """What changed after a state's `seq`, as soon as there is something; `reset`: read the state anew."""
        return self.get("/sandbox/changes?" + urlencode({"after": after, "wait": wait}))

    # -- talking to it ---------------------------------------------------------------------------------

    def call(self, method: str, **params: Any) -> Json:
        """Call the Bot API as the bot; returns the whole answer, a refusal too."""
        return self._request("POST", f"/bot{self.token}/{method}", params)[1]

    def perform(self, doing: str, **fields: Any) -> Any:
        """Any doing of the control by its path below /sandbox/, with the control's own fields; returns its result."""
        return self._do(doing, **fields)

    def get(self, path: str) -> Json:
        """GET a path of the control; returns the JSON."""
        status, answer = self._patiently("GET", path, None, ConnectionError)
        if status != 200:
            raise SandboxError(answer.get("error", f"status {status}"))
        return answer

    def _patiently(
        self, method: str, path: str, fields: Json | None, passing: type[ConnectionError]
    ) -> tuple[int, Json]:
        # An outage that was ordered is waited out.
        while True:
            try:
                return self._request(method, path, fields)
            except passing:
                if time.monotonic() >= self._away_until:
                    raise
            time.sleep(RETRY)

    def _request(self, method: str, path: str, fields: Json | None) -> tuple[int, Json]:
        # A connection for each request: several threads may ask at once, one of them for long.
        connection = http.client.HTTPConnection(self.api_root.removeprefix("http://"), timeout=60.0 + SLICE)
        try:
            body = None if fields is None else json.dumps(fields)
            connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def _move_in(self, address: Json) -> None:
        for name, value in address.items():
            setattr(self, name, value)

    def _do(self, doing: str, **fields: Any) -> Any:
        status, answer = self._patiently("POST", f"/sandbox/{doing}", fields, ConnectionRefusedError)
        if status != 200:
            raise SandboxError(answer.get("error", f"status {status}"))
        return answer["result"]

    def _download(self, path: str) -> bytes:
        connection = http.client.HTTPConnection(self.api_root.removeprefix("http://"), timeout=60.0)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise SandboxError(f"status {response.status} for {path}")
        return body

    def _owner(self) -> int:
        return self.chat_id

    def _message(self, doing: str, **fields: Any) -> Json:
        result: Json = self._do(doing, **fields)
        return result

    def _wait(self, wanted: Callable[[], Json | None], failure: str, within: float, chat_id: int) -> Json:
        end = time.monotonic() + within
        wait = 0.0
        while True:
            self._pull(wait)
            with self._lock:
                if (found := wanted()) is not None:
                    return found
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{failure} within {within} s; what was said (thread: text): {self._said(chat_id)}")
            wait = min(left, SLICE)

    def _said(self, chat_id: int) -> list[str]:
        messages = self.messages(chat_id=chat_id)[-20:]
        return [f"{item.get('message_thread_id', 0)}: {item.get('text', '(service)')}" for item in messages]

    def _pull(self, wait: float) -> None:
        news = self.changes(self._mirror.seq, wait)
        state = self.state() if news["reset"] else None
        with self._lock:
            if state is not None:
                self._mirror.reset(state)
            for change in news["changes"]:
                self._mirror.apply(change)


def _of(message: Json) -> Json:
    return {"chat_id": message["chat"]["id"], "message_id": message["message_id"]}


_FILTERS = frozenset(
    "kind method ok code description open disconnected fault flood slower since until text search after changed_after "
    "newest".split()
)


def _query(wanted: Json) -> str:
    def spelt(name: str) -> str:
        return name if name in _FILTERS or name.startswith("param.") else f"param.{name}"

    def encoded(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return urlencode({spelt(name): encoded(value) for name, value in wanted.items()})
