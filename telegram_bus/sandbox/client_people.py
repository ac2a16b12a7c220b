"""Files, votes, members and a group's switches. The part of `Client` for that."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from typing import Any

__all__ = ["People"]

Json = dict[str, Any]


class People(ABC):
    """What people do beside writing. `who`: user_id, chat_id; without them the owner in their private chat."""

    def send_file(
        self, content: bytes, name: str = "", *, kind: str = "document", caption: str = "", thread_id: int = 0,
        reply_to: int = 0, **who: int,
    ) -> Json:  # fmt: skip
        """A person sends a file; returns the message.

        `kind`: document, photo, audio, voice, video, animation, video_note, sticker. A photo has to be a picture.
        """
        file = {"kind": kind, "name": name, "content": _text(content), "caption": caption}
        sent: Json = self._do("send", files=[file], thread_id=thread_id, reply_to=reply_to, **who)[0]
        return sent

    def send_album(self, files: list[Json], *, thread_id: int = 0, reply_to: int = 0, **who: int) -> list[Json]:
        """A person sends 2 to 10 files at once: objects with content (bytes), name, kind, caption; returns messages."""
        encoded = [file | {"content": _text(file["content"])} for file in files]
        sent: list[Json] = self._do("send", files=encoded, thread_id=thread_id, reply_to=reply_to, **who)
        return sent

    def forward(self, messages: list[Json], comment: str = "", *, thread_id: int = 0, **who: int) -> list[Json]:
        """A person forwards messages of one chat, with a comment before them; returns the new messages."""
        ids, source = [message["message_id"] for message in messages], messages[0]["chat"]["id"]
        sent: list[Json] = self._do(
            "forward", from_chat_id=source, message_ids=ids, comment=comment, thread_id=thread_id, **who
        )
        return sent

    def file(self, file_id: str) -> bytes:
        """The bytes of a file, of whatever size, that somebody sent."""
        return self._download(f"/sandbox/file/{file_id}")

    def pin(self, message: Json, *, pinned: bool = True, **who: int) -> None:
        """A person pins or unpins a message."""
        where = {"chat_id": message["chat"]["id"], "message_id": message["message_id"]}
        self._do("pin", pinned=pinned, **where, **who)

    def vote(self, message: Json, *options: int, **who: int) -> Json:
        """A person votes in a poll; no options take the vote back; returns the poll."""
        where = {"chat_id": message["chat"]["id"], "message_id": message["message_id"]}
        poll: Json = self._do("vote", options=list(options), **where, **who)
        return poll

    def join(self, chat_id: int, *, user_id: int) -> None:
        """A person joins a group."""
        self._do("chat/join", chat_id=chat_id, user_id=user_id)

    def leave(self, chat_id: int, *, user_id: int) -> None:
        """A person leaves a group."""
        self._do("chat/leave", chat_id=chat_id, user_id=user_id)

    def set_bot(self, chat_id: int, status: str = "administrator", rights: list[str] | None = None) -> Json:
        """The owner makes the bot administrator with these rights, member, kicked or left."""
        wanted: Json = {"status": status} | ({} if rights is None else {"rights": rights})
        result: Json = self._do("chat/bot", chat_id=chat_id, user_id=self._owner(), **wanted)
        return result

    def set_forum(self, chat_id: int, *, forum: bool = True) -> None:
        """The owner switches the topics of a supergroup on or off."""
        self._do("chat/forum", chat_id=chat_id, user_id=self._owner(), forum=forum)

    def set_general(self, chat_id: int, *, closed: bool = False, hidden: bool = False) -> Json:
        """The owner closes, reopens, hides or shows the topic General."""
        result: Json = self._do("chat/general", chat_id=chat_id, user_id=self._owner(), closed=closed, hidden=hidden)
        return result

    def rename_chat(self, chat_id: int, title: str) -> None:
        """The owner gives a group another title."""
        self._do("chat/title", chat_id=chat_id, user_id=self._owner(), title=title)

    def migrate(self, chat_id: int) -> int:
        """The owner makes a supergroup of a group; returns its id."""
        return int(self._do("chat/migrate", chat_id=chat_id, user_id=self._owner())["chat_id"])

    def deactivate(self, user_id: int) -> None:
        """A person deletes their account."""
        self._do("deactivate", user_id=user_id)

    def stop_draft(self, draft_id: int, **who: int) -> None:
        """A person stops what the bot is writing (sendMessageDraft with can_stop)."""
        self._do("drafts/stop", draft_id=draft_id, **who)

    @abstractmethod
    def _do(self, doing: str, **fields: Any) -> Any: ...

    @abstractmethod
    def _download(self, path: str) -> bytes: ...

    @abstractmethod
    def _owner(self) -> int: ...


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
