"""An agent in any language: this one asks for a colour and keeps files, with nothing but JSON lines.

telegram-bus follower --name colours --jsonl -- python examples/jsonl_agent.py
"""

from __future__ import annotations

import json
import sys
from typing import Any

COLOURS = [[["Red", "red"], ["Green", "green"]], [["Blue", "blue"]]]


def ask(do: str, **fields: Any) -> None:
    """Ask the follower for something; without an id it answers only if that fails."""
    print(json.dumps({"do": do, **fields}), flush=True)


def on_update(update: dict[str, Any]) -> None:
    """What people do in the thread."""
    if update["kind"] == "callback":
        ask("answer", update=update["id"], text=f"{update['data']} it is")
        ask("edit", message_id=update["message"]["message_id"], text=f"You like {update['data']}.")
    elif update["kind"] == "message" and update["files"]:
        ask("download", id=update["id"], update=update["id"])  # goes on in on_answer
        return
    elif update["kind"] == "message":
        ask("reply", update=update["id"], text="Which colour?", buttons=COLOURS)
    ask("done", update=update["id"])


def on_answer(answer: dict[str, Any]) -> None:
    """Answers to downloads, whose id is that of the update, and complaints about anything else."""
    if answer["ok"]:
        ask("reply", update=answer["id"], text=f"Kept as {answer['result']['path'].rpartition('/')[2]}.")
        ask("send_file", path=answer["result"]["path"], caption="The same, back again.")
        ask("done", update=answer["id"])
    else:
        print(answer["error"]["message"], file=sys.stderr)


for line in sys.stdin:
    event = json.loads(line)
    if event["event"] == "update":
        on_update(event)
    elif event["event"] == "answer":
        on_answer(event)
