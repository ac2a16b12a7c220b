"""A bot with nothing but the standard library, for `tea_bot.jsonl`: it takes orders for tea.

telegram-bus sandbox --script examples/tea_bot.jsonl -- python examples/tea_bot.py
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

ROOT = f"{os.environ.get('TELEGRAM_BUS_API_ROOT', 'https://api.telegram.org')}/bot{os.environ['TELEGRAM_BOT_TOKEN']}"
KINDS = {"inline_keyboard": [[{"text": kind, "callback_data": kind} for kind in ("Green", "Black")]]}


def call(method: str, **params: Any) -> Any:
    request = urllib.request.Request(f"{ROOT}/{method}", json.dumps(params).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["result"]


def write(place: dict[str, Any], text: str, **more: Any) -> None:
    thread = {"message_thread_id": place["message_thread_id"]} if place.get("is_topic_message") else {}
    call("sendMessage", chat_id=place["chat"]["id"], text=text, **thread, **more)


def handle(update: dict[str, Any]) -> None:
    if query := update.get("callback_query"):
        message = query["message"]
        call("answerCallbackQuery", callback_query_id=query["id"])
        call(
            "editMessageText",
            chat_id=message["chat"]["id"],
            message_id=message["message_id"],
            text=f"{query['data']} tea it is.",
        )
    elif (message := update.get("message")) and "text" in message:
        if message["text"] == "/start":
            write(message, "Which tea?", reply_markup=KINDS)
        else:
            write(message, f"I only know /start, not {message['text']}.")


offset = 0
while True:
    for update in call("getUpdates", offset=offset, timeout=50):
        handle(update)
        offset = update["update_id"] + 1
