"""Files over real HTTP: multipart up, download, 413 (M14, M15), and what people send through the control."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Mapping
from typing import Any

import pytest

from telegram_bus.testing import Sandbox, SandboxError

Json = dict[str, Any]
BOUNDARY = "x123"
PICTURE = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 3, 2)


def request(sandbox: Sandbox, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(sandbox.api_root.removeprefix("http://"), timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named, encode_chunked=named.get("Transfer-Encoding") == "chunked")
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def multipart(fields: Mapping[str, str], files: Mapping[str, tuple[str, bytes]]) -> bytes:
    parts = [f'name="{name}"\r\n\r\n'.encode() + value.encode() for name, value in fields.items()]
    parts += [
        f'name="{name}"; filename="{file}"\r\nContent-Type: application/octet-stream\r\n\r\n'.encode() + content
        for name, (file, content) in files.items()
    ]
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; ".encode()
    return b"".join(head + part + b"\r\n" for part in parts) + f"--{BOUNDARY}--\r\n".encode()


def upload(sandbox: Sandbox, method: str, fields: Mapping[str, str], **files: tuple[str, bytes]) -> tuple[int, Json]:
    body = multipart({"chat_id": str(sandbox.chat_id), **fields}, files)
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    status, answer = request(sandbox, "POST", f"/bot{sandbox.token}/{method}", body, Content_Type=kind)
    return status, json.loads(answer)


def test_a_file_goes_up_and_comes_down(shared: Sandbox) -> None:
    content = bytes(range(256)) * 10
    status, answer = upload(shared, "sendDocument", {"caption": "grüße"}, document=("größe.bin", content))
    assert status == 200
    document = answer["result"]["document"]
    assert (document["file_name"], document["file_size"]) == ("größe.bin", len(content))
    path = shared.call("getFile", file_id=document["file_id"])["result"]["file_path"]
    assert request(shared, "GET", f"/file/bot{shared.token}/{path}") == (200, content)
    down = f"/file/bot{shared.token}/{path}"
    assert request(shared, "GET", down, Range="bytes=100-") == (206, content[100:])
    assert request(shared, "GET", down, Range="bytes=0-9") == (206, content[:10])
    assert request(shared, "GET", down, Range=f"bytes={len(content)}-")[0] == 416
    assert request(shared, "GET", down, Range="lines=1-2") == (200, content)
    assert request(shared, "GET", f"/file/bot{shared.token}/documents/file_999")[0] == 404
    assert request(shared, "GET", f"/file/bot{shared.token[:-3]}xxx/{path}")[0] == 401
    assert request(shared, "GET", "/file/bot1/")[0] == 404
    entry = shared.record(method="sendDocument")[-1]
    assert entry["params"]["document"] == {"file_name": "größe.bin", "size": len(content)}
    assert shared.file(document["file_id"]) == content


def test_an_album_goes_up_in_one_request(shared: Sandbox) -> None:
    media = [{"type": "photo", "media": "attach://a", "caption": "one"}, {"type": "photo", "media": "attach://b"}]
    status, answer = upload(
        shared, "sendMediaGroup", {"media": json.dumps(media)}, a=("a.png", PICTURE), b=("b.png", PICTURE)
    )
    assert status == 200
    assert [message["photo"][0]["width"] for message in answer["result"]] == [3, 3]
    assert shared.wait_for_message("one")["media_group_id"] == answer["result"][1]["media_group_id"]


def test_fifty_megabytes_pass_and_more_is_too_large(shared: Sandbox) -> None:
    whole = bytes(50 << 20)
    status, answer = upload(shared, "sendDocument", {}, document=("a.bin", whole))
    assert (status, answer["result"]["document"]["file_size"]) == (200, 50 << 20)
    assert shared.call("getFile", file_id=answer["result"]["document"]["file_id"])["description"] == (
        "Bad Request: file is too big"
    )
    too_large = {"ok": False, "error_code": 413, "description": "Request Entity Too Large"}
    for size in (1, 1 << 20):
        assert upload(shared, "sendDocument", {}, document=("a.bin", whole + bytes(size))) == (413, too_large)
    # Without a length it is found out on the way.
    chunks = (bytes(1 << 20) for _ in range(52))
    path = f"/bot{shared.token}/sendDocument"
    found = request(shared, "POST", path, chunks, Content_Type="application/json", Transfer_Encoding="chunked")
    assert (found[0], json.loads(found[1])) == (413, too_large)
    assert shared.call("getMe")["ok"]


def test_people_send_files_and_see_those_of_the_bot(shared: Sandbox) -> None:
    sent = shared.send_file(PICTURE, "a.png", kind="photo", caption="look", user_id=shared.chat_id)
    assert (sent["caption"], sent["photo"][0]["width"]) == ("look", 3)
    album = shared.send_album([{"content": b"a", "name": "a.txt"}, {"content": b"b", "name": "b.txt"}])
    assert len({message["media_group_id"] for message in album}) == 1
    assert shared.file(album[1]["document"]["file_id"]) == b"b"
    with pytest.raises(SandboxError, match="IMAGE_PROCESS_FAILED"):
        shared.send_file(b"x", kind="photo")
    with pytest.raises(SandboxError, match="404"):
        shared.file("nonsense")
    upload(shared, "sendVoice", {}, voice=("a.ogg", b"ogg"))
    assert shared.wait_for_message(after=album[1])["voice"]["mime_type"] == "audio/ogg"


def test_people_forward_with_a_comment_that_goes_first(shared: Sandbox) -> None:
    album = shared.send_album([{"content": b"a", "name": "a.txt"}, {"content": b"b", "name": "b.txt"}])
    thread = shared.create_topic("forwards")
    comment, *copies = shared.forward([*album, shared.say("alone")], "see these", thread_id=thread)
    assert comment["text"] == "see these"
    assert "forward_origin" not in comment
    assert {message["message_thread_id"] for message in (comment, *copies)} == {thread}
    assert [message["forward_origin"]["sender_user"]["id"] for message in copies] == [shared.chat_id] * 3
    assert copies[0]["media_group_id"] == copies[1]["media_group_id"] != album[0]["media_group_id"]
    assert copies[2]["text"] == "alone"
    assert len(shared.forward([copies[2]])) == 1
    with pytest.raises(SandboxError, match="there is no message"):
        shared.forward([{"chat": {"id": shared.chat_id}, "message_id": 10**6}])


def test_no_file_is_shown_as_a_page(shared: Sandbox) -> None:
    sent = shared.send_file(b"<script>alert(1)</script>", "a.html")
    connection = http.client.HTTPConnection(shared.api_root.removeprefix("http://"), timeout=60)
    connection.request("GET", f"/sandbox/file/{sent['document']['file_id']}")
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"].startswith("attachment")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_the_owner_decides_on_groups(sandbox: Sandbox) -> None:
    supergroup = sandbox.migrate(sandbox.group_id)
    refused = sandbox.call("sendMessage", chat_id=sandbox.group_id, text="x")
    assert refused["parameters"] == {"migrate_to_chat_id": supergroup}
    assert sandbox.set_bot(supergroup)["status"] == "administrator"
    sandbox.set_forum(supergroup)
    made = sandbox.call("createForumTopic", chat_id=supergroup, name="one")
    assert made["ok"]
    sandbox.set_bot(supergroup, rights=["can_delete_messages"])
    less = sandbox.call("createForumTopic", chat_id=supergroup, name="two")
    assert less["description"] == "Bad Request: not enough rights to create a topic"
    assert sandbox.set_general(sandbox.forum_id, closed=True) == {"closed": True, "hidden": False}
    sandbox.rename_chat(sandbox.forum_id, "Elsewhere")
    assert sandbox.call("getChat", chat_id=sandbox.forum_id)["result"]["title"] == "Elsewhere"
    said = sandbox.say("pin me")
    sandbox.pin(said)
    assert sandbox.call("getChat", chat_id=sandbox.chat_id)["result"]["pinned_message"]["text"] == "pin me"
    others = [user["id"] for user in sandbox.state()["users"] if user["id"] != sandbox.chat_id]
    sandbox.leave(sandbox.forum_id, user_id=others[0])
    member = sandbox.call("getChatMember", chat_id=sandbox.forum_id, user_id=others[0])
    assert member["result"]["status"] == "left"
    sandbox.join(sandbox.forum_id, user_id=others[0])
    sandbox.deactivate(others[0])
    assert sandbox.call("sendMessage", chat_id=others[0], text="x")["error_code"] == 403
    poll = sandbox.call("sendPoll", chat_id=sandbox.chat_id, question="?", options=["a", "b"])["result"]
    assert sandbox.vote(poll, 1)["total_voter_count"] == 1
    sandbox.call("sendMessageDraft", chat_id=sandbox.chat_id, draft_id=4, text="x", can_stop=True)
    sandbox.stop_draft(4)
    kinds = {kind for update in sandbox.call("getUpdates")["result"] for kind in update} - {"update_id"}
    assert {"my_chat_member", "message", "poll", "stopped_message_generation"} <= kinds
