"""Playing the guest of the café bot (`programs/README.md`) and looking at what the guest sees."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from telegram_bus.testing import Sandbox
from tests.clients import peers

__all__ = ["PROGRAMS", "visit"]

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = ("aiogram_bot.py", "telebot_bot.py", "grammy_bot.mjs", "telegraf_bot.mjs", "ntba_bot.mjs")
# The smallest PNG there is: one pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WITHIN = 60.0  # seconds for one answer of a program that may only just be starting, on a busy machine

Json = dict[str, Any]


def visit(program: str, sandbox: Sandbox, scratch: Path) -> None:
    """Hold the whole conversation with a program; raises AssertionError or TimeoutError with what the program said."""
    output = scratch / f"{program}.log"
    try:
        with _running(program, sandbox, output):
            thread, question = _order(sandbox)
            receipt = _choose(sandbox, thread, question)
            _change_mind(sandbox, thread)
            _send_file(sandbox, thread)
            _ask_album(sandbox, thread)
            _finish(sandbox, thread, receipt)
            _forget(sandbox, thread)
    except (AssertionError, TimeoutError) as error:
        error.add_note(f"{program} said:\n{output.read_text(encoding='utf-8')[-2000:]}")
        raise


@contextmanager
def _running(program: str, sandbox: Sandbox, output: Path) -> Iterator[None]:
    python = program.endswith(".py")
    command = [str(peers.python() if python else peers.node()), str(_placed(program, python=python))]
    environment = os.environ | {
        "API_ROOT": sandbox.api_root, "TOKEN": sandbox.token, "PIXEL": base64.b64encode(PIXEL).decode(),
    }  # fmt: skip
    with output.open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield
            assert process.poll() is None, "the program ended by itself"
        finally:
            process.kill()
            process.wait()


def _placed(program: str, *, python: bool) -> Path:
    if python:
        return FOLDER / program
    # JavaScript finds its modules beside the program, so it is put there.
    placed = peers.node_folder() / program
    placed.write_bytes((FOLDER / program).read_bytes())
    return placed


def _order(sandbox: Sandbox) -> tuple[int, Json]:
    sandbox.say("/order")
    thread = sandbox.wait_for_topic("Order", within=WITHIN)
    question = sandbox.wait_for_message("What would you like?", thread_id=thread, within=WITHIN)
    (row,) = question["reply_markup"]["inline_keyboard"]
    assert [button["text"] for button in row] == ["Tea", "Cake"]
    return thread, question


def _choose(sandbox: Sandbox, thread: int, question: Json) -> Json:
    pressed = sandbox.press(question, "Cake")
    edited = sandbox.wait_for_message("Cake, then.", thread_id=thread, within=WITHIN)
    assert edited["message_id"] == question["message_id"]
    assert edited["edit_date"]
    (answer,) = sandbox.wait_for_record(method="answerCallbackQuery", within=WITHIN)
    assert answer["params"]["text"] == "Cake it is"
    assert str(answer["params"]["callback_query_id"]) == pressed
    sandbox.press(edited, "Receipt")
    receipt = _seen(sandbox, lambda message: "document" in message and message["by_bot"], thread)
    assert receipt["caption"] == "Paid"
    assert [entity["type"] for entity in receipt["caption_entities"]] == ["bold"]
    assert receipt["document"]["file_name"] == "receipt.txt"
    assert sandbox.file(receipt["document"]["file_id"]) == "☕ Cake".encode()
    (action,) = sandbox.record(method="sendChatAction", ok=True)
    assert action["params"]["action"] == "upload_document"
    assert action["params"]["message_thread_id"] == thread
    return receipt


def _change_mind(sandbox: Sandbox, thread: int) -> None:
    said = sandbox.say("two, please", thread_id=thread)
    sandbox.edit(said, "three, please")
    reply = sandbox.wait_for_message("Changed: three, please", thread_id=thread, within=WITHIN)
    assert reply["reply_to_message"]["message_id"] == said["message_id"]


def _send_file(sandbox: Sandbox, thread: int) -> None:
    letter = "Dear café, gluten-free?".encode()
    sent = sandbox.send_file(letter, "letter.txt", thread_id=thread)
    reply = sandbox.wait_for_message(f"Got {len(letter)} bytes: Dear café, gluten-free?", within=WITHIN)
    assert reply["reply_to_message"]["message_id"] == sent["message_id"]
    assert reply["message_thread_id"] == thread


def _ask_album(sandbox: Sandbox, thread: int) -> None:
    sandbox.say("album", thread_id=thread)
    first = _seen(sandbox, lambda message: message.get("caption") == "Our tables", thread)
    group = first["media_group_id"]
    album = [item for item in sandbox.messages(thread_id=thread) if item.get("media_group_id") == group]
    assert len(album) == 2
    assert all((photo["photo"][-1]["width"], photo["photo"][-1]["height"]) == (1, 1) for photo in album)
    assert all(sandbox.file(photo["photo"][-1]["file_id"]) == PIXEL for photo in album)


def _finish(sandbox: Sandbox, thread: int, receipt: Json) -> None:
    said = sandbox.say("done", thread_id=thread)
    sandbox.wait_for_topic("Order, done", within=WITHIN)
    shown = {message["message_id"]: message for message in sandbox.messages(thread_id=thread)}
    assert shown[said["message_id"]]["reactions"] == [{"emoji": "👍", "by": [sandbox.bot_id]}]
    assert shown[receipt["message_id"]]["caption"] == "Paid. Thank you!"
    pinned = sandbox.call("getChat", chat_id=sandbox.chat_id)["result"]["pinned_message"]
    assert pinned["message_id"] == receipt["message_id"]


def _forget(sandbox: Sandbox, thread: int) -> None:
    sandbox.say("forget it", thread_id=thread)
    (deleted,) = sandbox.wait_for_record(method="deleteForumTopic", ok=True, within=WITHIN)
    assert deleted["params"]["message_thread_id"] == thread
    assert sandbox.topics() == []
    assert sandbox.messages(thread_id=thread) == []


def _seen(sandbox: Sandbox, where: Callable[[Json], bool], thread: int) -> Json:
    return sandbox.wait_for_message(thread_id=thread, where=where, within=WITHIN)
