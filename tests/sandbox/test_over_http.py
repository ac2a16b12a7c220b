"""The Bot API over real HTTP: how arguments arrive (H rows), who polls (U12 to U16), and what the record keeps."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any
from urllib.parse import urlencode

import pytest
import trio

from telegram_bus.testing import Sandbox, SandboxError

Json = dict[str, Any]

TERMINATED = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"


def ask(
    sandbox: Sandbox, method: str, path: str, body: str | bytes | None = None, **headers: str
) -> tuple[int, Json, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(sandbox.api_root.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}"), response.headers
    finally:
        connection.close()


class Poller:
    """A getUpdates whose answer is read later, or never."""

    def __init__(self, sandbox: Sandbox, **params: Any) -> None:
        self._connection = http.client.HTTPConnection(sandbox.api_root.removeprefix("http://"), timeout=60)
        before = len(sandbox.record(kind="poll"))
        self._connection.request("GET", f"/bot{sandbox.token}/getUpdates?{urlencode(params)}")
        sandbox.wait_for_record(before + 1, kind="poll")

    def answer(self) -> Json:
        with self._connection.getresponse() as response:
            answer: Json = json.loads(response.read())
        self._connection.close()
        return answer

    def hang_up(self) -> None:
        self._connection.close()


def test_arguments_arrive_in_every_way_and_names_in_any_case(shared: Sandbox) -> None:
    root = f"/bot{shared.token}"
    fields = {"chat_id": str(shared.chat_id), "text": "grüße & +"}
    boundary = "x123"
    parts = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    answers = [
        ask(shared, "GET", f"{root}/sendMessage?{urlencode(fields)}"),
        ask(shared, "POST", f"{root}/SENDMESSAGE", urlencode(fields), Content_Type="application/x-www-form-urlencoded"),
        ask(shared, "POST", f"{root}/sendmessage", json.dumps(fields), Content_Type="application/json; charset=utf-8"),
        ask(
            shared, "POST", f"{root}/sendMessage", f"{parts}--{boundary}--\r\n".encode(),
            Content_Type=f"multipart/form-data; boundary={boundary}",
        ),
        ask(shared, "POST", f"{root}/test/sendMessage?text=x", json.dumps(fields), Content_Type="application/json"),
    ]  # fmt: skip
    for status, answer, _ in answers:
        assert (status, answer["ok"], answer["result"]["text"]) == (200, True, fields["text"])
    assert len(shared.record(method="sendMessage", text=fields["text"])) == 5


def test_refusals_have_their_status(shared: Sandbox) -> None:
    token = shared.token
    wrong = token[:-4] + "AAAA"
    expected = {
        f"/bot{token}/sendMessage": (400, "Bad Request: message text is empty"),
        f"/bot{token}/getStickerSet": (404, "Not Found: method not found"),
        f"/bot{token}": (404, "Not Found"),
        "/elsewhere": (404, "Not Found"),
        "/botnonsense/getMe": (404, "Not Found"),
        f"/bot0{token}/getMe": (404, "Not Found"),
        f"/bot{wrong}/getMe": (401, "Unauthorized"),
    }
    for path, (code, description) in expected.items():
        status, answer, headers = ask(shared, "GET", path)
        assert (status, answer) == (code, {"ok": False, "error_code": code, "description": description}), path
        assert headers["content-type"] == "application/json"


def test_broken_bodies_are_refused_and_the_server_lives(shared: Sandbox) -> None:
    path = f"/bot{shared.token}/getMe"
    for body, kind in (("{", "application/json"), ("[1]", "application/json"), ("x", "multipart/form-data")):
        status, answer, _ = ask(shared, "POST", path, body, Content_Type=kind)
        assert (status, answer["ok"]) == (400, False)
    assert ask(shared, "POST", path, "x", Content_Type="text/plain")[0] == 200
    assert ask(shared, "POST", path, None, Content_Length=str(51 << 20))[0] == 413


def test_a_token_is_new_each_time(shared: Sandbox) -> None:
    with Sandbox() as other:
        assert other.bot_id != shared.bot_id
        assert other.call("getMe")["result"]["id"] == other.bot_id
    assert shared.token.startswith(f"{shared.bot_id}:")
    assert len(shared.token.partition(":")[2]) == 35


def test_a_waiting_poll_is_answered_when_something_is_said(sandbox: Sandbox) -> None:
    poller = Poller(sandbox, timeout=50)
    said = sandbox.say("wake up")
    answer = poller.answer()
    assert [update["message"]["message_id"] for update in answer["result"]] == [said["message_id"]]
    (entry,) = sandbox.record(kind="poll")
    assert entry["result"] == [update["update_id"] for update in answer["result"]]
    assert entry["ended"] > entry["began"]


def test_the_newest_updates_can_be_seen_without_polling_them(sandbox: Sandbox) -> None:
    sandbox.say("one")
    sandbox.say("two")
    seen = sandbox.updates()
    assert [update["message"]["text"] for update in seen] == ["one", "two"]
    assert sandbox.call("getUpdates")["result"] == seen
    assert sandbox.call("getUpdates", offset=seen[-1]["update_id"] + 1)["result"] == []
    assert sandbox.updates() == seen


def test_u12_a_webhook_forbids_polling(sandbox: Sandbox) -> None:
    assert sandbox.call("setWebhook", url="https://example.org/hook")["ok"]
    assert sandbox.call("getWebhookInfo")["result"]["url"] == "https://example.org/hook"
    answer = sandbox.call("getUpdates")
    assert answer == {
        "ok": False,
        "error_code": 409,
        "description": "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the "
        "webhook first",
    }
    assert sandbox.call("deleteWebhook")["ok"]
    assert sandbox.call("getUpdates", offset=1)["ok"]


def test_u13_the_newer_poll_ends_the_older(sandbox: Sandbox) -> None:
    older = Poller(sandbox, timeout=50)
    newer = Poller(sandbox, timeout=50, offset=1)
    assert older.answer() == {"ok": False, "error_code": 409, "description": TERMINATED}
    sandbox.say("hello")
    assert len(newer.answer()["result"]) == 1


def test_u14_a_webhook_ends_the_waiting_poll(sandbox: Sandbox) -> None:
    poller = Poller(sandbox, timeout=50)
    sandbox.call("setWebhook", url="https://example.org/hook")
    assert poller.answer()["description"] == "Conflict: terminated by setWebhook request"


def test_u16_a_poller_that_hangs_up_is_recorded_and_still_the_waiting_one(sandbox: Sandbox) -> None:
    gone = Poller(sandbox, timeout=50)
    gone.hang_up()
    (entry,) = sandbox.wait_for_record(kind="poll", disconnected=True)
    assert entry["ended"] is None
    # What arrives meanwhile goes to the dead connection, but is not confirmed by that.
    first = sandbox.say("one")
    later = Poller(sandbox, timeout=50)
    answer = later.answer()
    assert [update["message"]["message_id"] for update in answer["result"]] == [first["message_id"]]


def test_u16_the_successor_of_a_dead_poller_sees_no_conflict(sandbox: Sandbox) -> None:
    gone = Poller(sandbox, timeout=50)
    gone.hang_up()
    sandbox.wait_for_record(kind="poll", disconnected=True)
    later = Poller(sandbox, timeout=50)
    said = sandbox.say("one")
    assert later.answer()["result"][0]["message"]["message_id"] == said["message_id"]


def test_the_record_tells_what_was_called(shared: Sandbox) -> None:
    before = len(shared.record())
    thread = shared.create_topic("one")
    shared.call("sendMessage", chat_id=shared.chat_id, message_thread_id=thread, text="[1] first")
    shared.call("sendMessage", chat_id=shared.chat_id, message_thread_id=999, text="lost")
    good, bad = shared.record(method="sendmessage", after=before)
    assert (good["ok"], good["code"], good["params"]["text"]) == (True, 200, "[1] first")
    assert good["result"]["message_thread_id"] == thread
    assert (bad["ok"], bad["code"], bad["description"]) == (False, 400, "Bad Request: message thread not found")
    assert shared.record(method="sendMessage", message_thread_id=thread) == [good]
    assert shared.record(text="lost") == [bad]
    assert shared.record(ok=False, after=bad["n"]) == []
    with pytest.raises(TimeoutError):
        shared.wait_for_record(3, method="sendMessage", after=before, within=0.01)


def test_what_people_cannot_do_is_said(shared: Sandbox) -> None:
    with pytest.raises(SandboxError, match="no topic 999"):
        shared.say("x", thread_id=999)
    with pytest.raises(SandboxError, match="no button"):
        shared.press(shared.say("x"), "data")
    with pytest.raises(SandboxError, match="one of privacy, threaded_mode, topic_cache, users_create_topics"):
        shared.settings(nonsense=True)
    shared.settings(threaded_mode=False)
    with pytest.raises(SandboxError, match="Threaded Mode is off"):
        shared.create_topic("x")
    shared.settings(threaded_mode=True)


def test_t4_t19_cached_and_pruned_topics_can_be_had_by_the_control(shared: Sandbox) -> None:
    there = {"chat_id": shared.chat_id, "text": "x"}
    gone, pruned = shared.create_topic("gone"), shared.create_topic("pruned")
    shared.delete_topic(gone)
    shared.prune_topic(pruned)
    assert shared.call("sendMessage", **there, message_thread_id=gone)["error_code"] == 400
    assert shared.settings(topic_cache=True)["topic_cache"] is True
    assert "message_thread_id" not in shared.call("sendMessage", **there, message_thread_id=gone)["result"]
    shared.settings(topic_cache=False)
    refused = shared.call("sendMessage", **there, message_thread_id=pruned)
    assert refused["description"] == "Bad Request: message thread not found"
    assert shared.say("still here", thread_id=pruned)["message_thread_id"] == pruned
    assert [topic["pruned"] for topic in shared.topics() if topic["thread_id"] == pruned] == [True]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example:80"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "https://example.org"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/sandbox/state", "/sandbox/events", "/page/app.js", "/elsewhere"])
def test_foreign_pages_reach_nothing_but_the_bot_api(shared: Sandbox, headers: dict[str, str], path: str) -> None:
    assert ask(shared, "GET", path, **headers)[0] == 403
    assert ask(shared, "GET", f"/bot{shared.token}/getMe", **headers)[0] == 200


def test_a_form_of_a_foreign_page_does_nothing(shared: Sandbox) -> None:
    body = json.dumps({"text": "forged"})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert ask(shared, "POST", "/sandbox/say", body, Content_Type=kind)[0] == 403
    own = ask(shared, "POST", "/sandbox/say", body, Content_Type="application/json", Origin=shared.api_root)
    assert own[0] == 200


def test_events_resume_where_they_were_and_say_when_they_cannot(shared: Sandbox) -> None:
    def first_events(last_seen: str) -> str:
        with socket.create_connection(("127.0.0.1", int(shared.api_root.rpartition(":")[2]))) as stream:
            host = shared.api_root.removeprefix("http://")
            stream.sendall(
                f"GET /sandbox/events HTTP/1.1\r\nHost: {host}\r\nLast-Event-ID: {last_seen}\r\n\r\n".encode()
            )
            received = b""
            while b"event:" not in received or not received.endswith((b"\n\n", b"\n\n\r\n")):
                received += stream.recv(65_536)
        return received.decode()

    state = shared.state()
    shared.say("one")
    shared.say("two")
    instance, seq = state["instance"], state["seq"]
    missed = first_events(f"{instance}.{seq}")
    assert f"id: {instance}.{seq + 1}" in missed
    assert '"text":"one"' in missed
    later = first_events(f"{instance}.{seq + 1}")
    assert '"text":"one"' not in later
    assert '"text":"two"' in later
    for unknown in ("another.1", f"{instance}.99999", "", f"{instance}.x"):
        assert "event: reset" in first_events(unknown)


async def test_the_helper_can_be_used_from_trio_through_threads() -> None:
    running = Sandbox()
    await trio.to_thread.run_sync(running.__enter__)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, lambda: running.wait_for_message("answer"))
            said = await trio.to_thread.run_sync(running.say, "question")
            running.call("sendMessage", chat_id=running.chat_id, text=f"answer to {said['text']}")
    finally:
        await trio.to_thread.run_sync(running.__exit__, None, None, None)


def test_the_process_ends_with_its_starter() -> None:
    with Sandbox() as running:
        process = running._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0
