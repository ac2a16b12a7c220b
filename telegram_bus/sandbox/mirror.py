"""A copy of a sandbox's messages and topics, kept up by its changes."""

from __future__ import annotations

from typing import Any

__all__ = ["Mirror"]

Json = dict[str, Any]


class Mirror:
    """Messages and topics by chat and id, in the order in which they came; `seq` is the last change it knows."""

    def __init__(self) -> None:
        self.seq = -1  # nothing: what is there already has to be read first
        self._messages: dict[tuple[int, int], Json] = {}
        self._topics: dict[tuple[int, int], Json] = {}

    def messages(self, chat_id: int, thread_id: int | None = None, by_bot: bool | None = None) -> list[Json]:
        """The messages of a chat; of one thread (0: outside all topics), of the bot or of people, when given."""
        return [
            message
            for (chat, _), message in self._messages.items()
            if chat == chat_id and thread_id in {None, _topic(message)} and by_bot in {None, message["by_bot"]}
        ]

    def topics(self, chat_id: int) -> list[Json]:
        """The topics of a chat."""
        return [topic for (chat, _), topic in self._topics.items() if chat == chat_id]

    def reset(self, state: Json) -> None:
        """Take over a whole state."""
        self.seq = state["seq"]
        chats = state["chats"]
        self._messages = {(chat["id"], item["message_id"]): item for chat in chats for item in chat["messages"]}
        self._topics = {(chat["id"], item["thread_id"]): item for chat in chats for item in chat["topics"]}

    def apply(self, change: Json) -> None:
        """Follow one change; one that is known already does nothing."""
        if change["seq"] <= self.seq:
            return
        self.seq = change["seq"]
        chat = change.get("chat_id", 0)
        match change["kind"]:
            case "message" | "edit":
                self._messages[chat, change["message"]["message_id"]] = change["message"]
            case "delete":
                for message_id in change["message_ids"]:
                    self._messages.pop((chat, message_id), None)
            case "topic":
                self._topics[chat, change["topic"]["thread_id"]] = change["topic"]
            case "topic_deleted":
                self._topics.pop((chat, change["thread_id"]), None)


def _topic(message: Json) -> int:
    # A thread of replies, in a supergroup without topics, is no topic.
    return int(message["message_thread_id"]) if message.get("is_topic_message") else 0
