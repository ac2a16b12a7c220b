"""Programs that speak JSON lines, against a sandbox and a real leader: the example, and all that can be asked for."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from telegram_bus.cli.demo_bus import BUS, DemoBus
from telegram_bus.sandbox.client import Client
from tests.e2e.rig import PATIENCE

EXAMPLE = Path(__file__).parents[2] / "examples" / "jsonl_agent.py"

# A program that passes lines between the follower and the test: both directions over a Unix socket.
RELAY = """
import socket, sys, threading
peer = socket.socket(socket.AF_UNIX); peer.connect(sys.argv[1])
def outwards():
    for line in peer.makefile("rb"):
        sys.stdout.buffer.write(line); sys.stdout.buffer.flush()
    import os; os._exit(0)
threading.Thread(target=outwards, daemon=True).start()
for line in sys.stdin.buffer:
    peer.sendall(line)
"""


class Program:
    """The test as a program: what it was told, and what it asks for."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines: IO[bytes] = connection.makefile("rb")
        self._serial = 0
        self.told: list[dict[str, Any]] = []

    def ask(self, do: str, **fields: Any) -> Any:
        """The result; raises AssertionError with the error of a refusal."""
        answer = self.try_to(do, **fields)
        assert answer["ok"], answer["error"]
        return answer["result"]

    def error(self, do: str, **fields: Any) -> dict[str, Any]:
        answer = self.try_to(do, **fields)
        assert not answer["ok"]
        return dict(answer["error"])

    def try_to(self, do: str, **fields: Any) -> dict[str, Any]:
        self._serial += 1
        self.write(json.dumps({"id": self._serial, "do": do, **fields}).encode())
        return self.until("answer", id=self._serial)

    def write(self, line: bytes) -> None:
        self._connection.sendall(line + b"\n")

    def until(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next event with these fields, those before it included that nobody has asked for."""
        for at, one in enumerate(self.told):
            if one["event"] == event and fields.items() <= one.items():
                return self.told.pop(at)
        while True:
            one = json.loads(self._lines.readline())
            if one["event"] == event and fields.items() <= one.items():
                return dict(one)
            self.told.append(one)

    def close(self) -> None:
        self._lines.close()
        self._connection.close()


@pytest.fixture
def program(demo: DemoBus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    path = demo.directory / "relay.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(PATIENCE)
        command = [*BUS, "follower", "--name", "relay", "--jsonl", "--", sys.executable, "-c", RELAY, str(path)]
        demo.start("relay", command)
        connection, _ = listener.accept()
    connection.settimeout(PATIENCE)
    running = Program(connection)
    yield running
    running.close()
    assert demo.processes.pop("relay").wait(PATIENCE) == 0
    path.unlink()


def test_everything_can_be_asked_for(demo: DemoBus, person: Client, program: Program, tmp_path: Path) -> None:
    hello = program.until("hello")
    assert (hello["protocol"], hello["key"], hello["name"]) == (1, "relay", "relay")
    place = program.ask("state", wait=PATIENCE)
    thread = place["thread_id"]
    assert place["state"] == "serving"
    assert program.until("state", state="serving")["thread_id"] == thread

    sent = program.ask("send", text="<b>hi</b>", parse_mode="HTML", buttons=[[["Go", "go"]]], once="first")
    assert (sent["thread_id"], sent["message"]["text"]) == (thread, "hi")
    assert program.ask("send", text="again", once="first") == sent
    message_id = sent["message_id"]
    program.ask("react", message_id=message_id, emoji="👀")
    program.ask("typing")

    person.press(sent["message"], "go")
    pressed = program.until("update", kind="callback")
    assert (pressed["data"], pressed["message"]["message_id"]) == ("go", message_id)
    assert pressed["raw"]["data"] == "go"
    program.ask("answer", update=pressed["id"], text="yes")
    program.ask("edit", message_id=message_id, text="done")
    program.ask("done", update=pressed["id"])

    person.say("hello", thread_id=thread)
    said = program.until("update", kind="message")
    assert (said["text"], said["files"], "raw" in said) == ("hello", [], False)
    reply = program.ask("reply", update=said["id"], text="you too")
    assert reply["message"]["reply_to_message"]["message_id"] == said["message"]["message_id"]
    program.ask("done", update=said["id"])
    assert program.error("reply", update=said["id"], text="late")["field"] == "update"
    program.ask("delete", message_id=reply["message_id"])

    report = tmp_path / "report.txt"
    report.write_text("content")
    file = program.ask("send_file", path=str(report), caption="here")["message"]["document"]
    assert person.file(file["file_id"]) == b"content"
    assert program.ask("send_file", base64="aGk=", name="hi.txt")["message"]["document"]["file_name"] == "hi.txt"
    album = [{"path": str(report), "kind": "document"}, {"base64": "aGk=", "kind": "document", "name": "b.txt"}]
    assert [one["message"]["document"]["file_name"] for one in program.ask("send_album", files=album)] == [
        "report.txt",
        "b.txt",
    ]
    fetched = Path(program.ask("download", file_id=file["file_id"], name="../x", into=str(tmp_path))["path"])
    assert (fetched, fetched.read_text()) == (tmp_path / "x", "content")
    person.send_file(b"theirs", "t.txt", thread_id=thread)
    given = program.until("update", kind="message")
    assert given["files"][0]["name"] == "t.txt"
    assert Path(program.ask("download", update=given["id"])["path"]).read_bytes() == b"theirs"

    assert program.ask("call", method="getMe")["is_bot"] is True
    assert [member["key"] for member in program.ask("members")] == ["relay"]
    program.ask("watch_members")
    assert program.until("members")["members"][0]["thread_id"] == thread
    demo.start("cat", [*BUS, "follower", "--name", "cat", "--", "cat"])
    while "cat" not in [member["name"] for member in program.until("members")["members"]]:
        pass
    assert program.ask("tell", agent="cat", text="psst")["thread_id"] == demo.thread_of("cat")


def test_long_texts_markdown_and_growing_messages(person: Client, program: Program, tmp_path: Path) -> None:
    thread = program.ask("state", wait=PATIENCE)["thread_id"]
    sent = program.ask("send", text="**many** words " * 500, markdown=True, most_parts=2)
    assert [one["message_id"] for one in sent["parts"]] == [sent["message_id"], sent["message_id"] + 1]
    assert sent["message"]["entities"][0]["type"] == "bold"
    assert program.ask("edit", message_id=sent["message_id"], text="*few*", markdown=True)["message"]["text"] == "few"

    person.say("think", thread_id=thread)
    said = program.until("update", text="think")
    for piece in ("one", " **two**", " three"):
        first = {"update": said["id"], "markdown": True} if piece == "one" else {}
        program.write(json.dumps({"do": "stream", "stream": "s", "text": piece, **first}).encode())
    grown = program.ask("stream_end", stream="s", text=" four")
    assert grown["message"]["text"] == "one two three four"
    assert grown["message"]["reply_to_message"]["message_id"] == said["message"]["message_id"]
    program.ask("stream", stream="t", text="half", drafts=False)
    person.wait_for_message("half …", thread_id=thread, within=PATIENCE)
    assert program.error("stream", stream="t", text="x", markdown=True)["field"] == "markdown"
    program.ask("stream_end", stream="t", give_up=True)
    person.wait_for_message("half\n\n(This is not all: it was broken off.)", thread_id=thread, within=PATIENCE)
    assert program.error("stream_end", stream="t")["field"] == "stream"
    program.ask("done", update=said["id"])

    large = tmp_path / "large"
    large.write_bytes(bytes(40_000_000))
    program.ask("send_file", path=str(large), progress=True, once="large")
    seen = [one for one in program.told if one["event"] == "progress"]
    assert all(0 <= one["sent"] < one["size"] == 40_000_000 for one in seen)


def test_people_are_asked_with_any_data_behind_a_button(person: Client, program: Program) -> None:
    """An answer may take long: meanwhile other requests have their turn, however many wait for people."""
    thread = program.ask("state", wait=PATIENCE)["thread_id"]
    for number in range(40):
        request = {"id": f"q{number}", "do": "ask", "question": f"Number {number}?", "choices": [["Yes", [number]]]}
        program.write(json.dumps(request).encode())
    program.ask("members")
    for number in (7, 39, *range(7), *range(8, 39)):
        person.press(person.wait_for_message(f"Number {number}?", thread_id=thread, within=PATIENCE), "Yes")
        answer = program.until("answer", id=f"q{number}")["result"]
        assert (answer["answer"], answer["value"], answer["number"]) == ("Yes", [number], 0)
        assert answer["sender"]["id"] == person.chat_id

    sent = program.ask("send", text="once", buttons={"rows": [[["Go", {"deep": [None]}]]], "one_time": True})
    person.press(sent["message"], "Go")
    pressed = program.until("update", kind="callback")
    assert pressed["data"] == {"deep": [None]}
    program.ask("answer", update=pressed["id"], text="gone")
    program.ask("done", update=pressed["id"])
    assert program.error("send", text="x", buttons=[[["Go", "x" * 70_000]]])["code"] == "bad-request"

    before = len(person.record(method="sendChatAction"))
    program.ask("typing", seconds=60)
    person.wait_for_record(before + 2, method="sendChatAction", within=PATIENCE)
    program.ask("typing", seconds=0)


def test_what_goes_wrong_is_told(person: Client, program: Program) -> None:
    program.ask("state", wait=PATIENCE)
    program.write(b"no json")
    assert program.until("answer", id=None)["error"]["code"] == "bad-request"
    assert program.error("send", text="x", colour="red")["field"] == "colour"
    assert program.error("call", method="getUpdates")["code"] == "refused"
    api = program.error("send", text="<b>x", parse_mode="HTML")
    assert (api["code"], api["api_code"], api["method"]) == ("api", 400, "sendMessage")
    assert program.error("send_file", path="/nowhere/at/all")["code"] == "file"
    assert program.error("tell", agent="nobody", text="x")["code"] == "refused"
    assert program.error("call", method="getMe", params={"method": "x"})["code"] == "bad-request"
    assert program.error("download", file_id="x")["code"] == "refused"


def test_messages_go_out_in_the_order_in_which_they_were_asked_for(person: Client, program: Program) -> None:
    thread = program.ask("state", wait=PATIENCE)["thread_id"]
    for number in range(30):
        program.write(json.dumps({"do": "send", "text": f"number {number}"}).encode())
    program.ask("send", text="the end")
    texts = [message["text"] for message in person.messages(thread_id=thread) if "number " in message.get("text", "")]
    assert texts == [f"number {number}" for number in range(30)]


def test_the_example_asks_and_keeps_files(demo: DemoBus, person: Client) -> None:
    command = [*BUS, "follower", "--name", "colours", "--jsonl", "--", sys.executable, str(EXAMPLE)]
    demo.start("colours", command)
    thread = demo.thread_of("colours")
    person.say("hello", thread_id=thread)
    question = person.wait_for_message("Which colour?", thread_id=thread, within=PATIENCE)
    assert person.press(question, "blue")
    person.wait_for_message("You like blue.", thread_id=thread, within=PATIENCE)
    person.send_file(b"content", "notes.txt", thread_id=thread)
    person.wait_for_message("Kept as notes.txt.", thread_id=thread, within=PATIENCE)
    demo.processes["colours"].terminate()
    assert demo.processes.pop("colours").wait(PATIENCE) == 0
