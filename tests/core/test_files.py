"""Files of messages, the ids in them, and names that are safe on a disk."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.admission import Rules, decide
from telegram_bus.core.decisions import Call, Fetch, Refuse
from telegram_bus.core.extensions import FileGet, FilePart, FileSend
from telegram_bus.core.files import FileInfo, file_ids, files_of, numbered, safe_name
from telegram_bus.core.identity import DURABLE_ADMISSION, EXTENSIONS
from telegram_bus.core.permissions import COMPATIBLE, OWN, Allowed, Denied, judge_files
from telegram_bus.core.registry import Registry
from telegram_bus.core.scopes import local_file
from telegram_bus.core.values import ProtocolIdentity, Registration
from tests.core.test_permissions import CHAT, IN_THREAD, caller

OWN_MESSAGE: dict[str, object] = {"chat_id": CHAT, "message_id": 9}
PHOTO: dict[str, object] = {"type": "photo", "media": "attach://file0"}


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.txt", "a.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\dir\\a.txt", "a.txt"),
        ("a\x00b\n.txt", "ab.txt"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("..", "file"),
        ("", "file"),
        ("a/", "file"),
        ("photo\u202egpj.exe", "photogpj.exe"),
        ("Ünïcode ☃.pdf", "Ünïcode ☃.pdf"),
        ("\ud800", "file"),
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
    ],
)
def test_a_name_becomes_one_harmless_path_component(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text(st.characters(codec=None), max_size=400))
def test_no_name_leads_out_of_its_directory(name: str) -> None:
    safe = safe_name(name)
    assert safe not in ("", ".", "..")
    assert "/" not in safe
    assert "\0" not in safe
    assert len(safe.encode()) <= 200
    assert safe_name(safe) == safe


def test_names_are_numbered_before_their_suffix() -> None:
    assert [numbered("a.b.txt", number) for number in (1, 2, 3)] == ["a.b.txt", "a.b-2.txt", "a.b-3.txt"]
    assert numbered("README", 2) == "README-2"


def test_a_message_tells_its_file() -> None:
    document = {"file_id": "d", "file_name": "a.pdf", "file_size": 5, "mime_type": "application/pdf"}
    assert files_of({"document": document}) == (
        FileInfo(file_id="d", kind="document", name="a.pdf", size=5, mime="application/pdf"),
    )
    sizes = [{"file_id": "s", "width": 9, "height": 9}, {"file_id": "l", "width": 90, "height": 90}]
    assert [one.file_id for one in files_of({"photo": sizes})] == ["l"]
    assert [one.kind for one in files_of({"animation": {"file_id": "a"}, "document": document})] == ["animation"]
    odd_ones: list[dict[str, Any]] = [{}, {"photo": []}, {"document": "d"}, {"voice": {"file_id": 5}}]
    for odd in (*odd_ones, {"photo": ["x"]}):
        assert files_of(odd) == ()


def test_every_id_in_a_message_counts() -> None:
    message = {
        "photo": [{"file_id": "1"}, {"file_id": "2"}],
        "reply_to_message": {"video": {"file_id": "3", "thumbnail": {"file_id": "4"}}},
        "text": "file_id",
    }
    assert sorted(file_ids(message)) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("method", "body", "fields"),
    [
        ("sendDocument", IN_THREAD, ["document"]),
        ("sendPhoto", IN_THREAD | {"caption": "x"}, ["photo"]),
        ("sendMediaGroup", IN_THREAD | {"media": [{"type": "photo", "media": "attach://file0"}]}, ["file0"]),
        ("sendVideo", IN_THREAD | {"thumbnail": "attach://file0"}, ["video", "file0"]),
        ("editMessageMedia", OWN_MESSAGE | {"media": {"type": "photo", "media": "attach://file0"}}, ["file0"]),
    ],
)
def test_a_follower_may_upload_into_its_own_thread(method: str, body: dict[str, object], fields: list[str]) -> None:
    assert judge_files(OWN, (method, body), fields, caller()) == Allowed(method="call", args=(method, body))


@pytest.mark.parametrize(
    ("method", "body", "fields", "named"),
    [
        ("sendDocument", {"chat_id": 1}, ["document"], "chat_id"),
        ("sendDocument", IN_THREAD | {"message_thread_id": 43}, ["document"], "message_thread_id"),
        ("sendDocument", IN_THREAD, ["chat_id"], "chat_id"),
        ("sendDocument", IN_THREAD, ["message_thread_id"], "message_thread_id"),
        ("sendDocument", IN_THREAD, ["reply_parameters"], "reply_parameters"),
        ("sendDocument", IN_THREAD, ["document", "document"], "field of its own"),
        ("sendDocument", IN_THREAD | {"document": "f"}, ["document"], "document"),
        ("sendDocument", IN_THREAD | {"thumbnail": "/etc/passwd"}, ["document"], "thumbnail"),
        ("sendDocument", IN_THREAD, ["document", "file1"], "file1 is a file that nothing in the call refers to"),
        ("sendDocument", IN_THREAD, [], "document is missing"),
        ("sendDocument", IN_THREAD | {"thumbnail": "attach://file2"}, ["document", "file1"], "thumbnail"),
        ("editMessageMedia", OWN_MESSAGE | {"message_id": 10, "media": PHOTO}, ["file0"], "message_id"),
        ("editMessageMedia", OWN_MESSAGE | {"chat_id": 1, "media": PHOTO}, ["file0"], "chat_id"),
        ("editMessageMedia", OWN_MESSAGE | {"media": PHOTO | {"media": "/etc/passwd"}}, ["file0"], "media.media"),
        ("editMessageMedia", OWN_MESSAGE, ["media"], "media"),
        ("setChatPhoto", IN_THREAD, ["photo"], "setChatPhoto"),
        ("sendMessage", IN_THREAD, ["document"], "sendMessage"),
    ],
)
def test_an_upload_reaches_no_further(method: str, body: dict[str, object], fields: list[str], named: str) -> None:
    verdict = judge_files(OWN, (method, body), fields, caller())
    assert isinstance(verdict, Denied)
    assert named in verdict.reason


def test_an_upload_without_a_target_goes_nowhere() -> None:
    assert isinstance(judge_files(COMPATIBLE, ("sendDocument", {}), ["document"], caller()), Denied)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"thumbnail": "file:///etc/passwd"}, "thumbnail"),
        ({"media": '[{"type":"photo","media":"/etc/passwd"}]'}, "media"),
        ({"media": [{"media": "file:///x"}]}, "media.0.media"),
        ({"media": '[{"type":"photo","media":"attach://file0"}]'}, None),
        ({"caption": "/etc/passwd", "photo": "attach://file0"}, None),
        ({"photo": '"/etc/passwd"'}, "photo"),
    ],
)
def test_paths_of_the_server_s_disk_are_found(body: dict[str, object], field: str | None) -> None:
    assert local_file(body) == field


@pytest.mark.parametrize("extended", [False, True])
def test_files_are_asked_for_by_registered_peers_with_the_extensions(extended: bool) -> None:
    """In their own name, as every call."""
    capabilities = (DURABLE_ADMISSION, EXTENSIONS) if extended else (DURABLE_ADMISSION,)
    identity = ProtocolIdentity(protocol_version=1, runtime_build="x", capabilities=capabilities)
    registration = Registration(
        instance_id="a", connected_at_ms=1, registration_generation="g", protocol=identity, profile_key="a"
    )
    registry, rules = Registry(), Rules(identity=identity)
    member = registry.admit(registration, None, now_ms=1, peer_pid=5).member
    part = FilePart(field="document", name="a")
    name: dict[str, Any] = {"request_id": "1", "instance_id": "a", "sent_at_ms": 1}
    send = FileSend(**name, registration_generation="g", method="sendDocument", params={"x": 1}, files=(part,))
    get = FileGet(**name, registration_generation="g", file_id="f")
    if extended:
        assert decide(send, registry, rules, peer_pid=5) == Call(
            member=member, method="call", args=("sendDocument", {"x": 1}), parts=(part,)
        )
        assert decide(get, registry, rules, peer_pid=5) == Fetch(member=member, file_id="f")
    else:
        assert isinstance(decide(send, registry, rules, peer_pid=5), Refuse)
        assert isinstance(decide(get, registry, rules, peer_pid=5), Refuse)
    for pid, generation in ((6, "g"), (5, "old")):
        asked = FileGet(**name, registration_generation=generation, file_id="f")
        assert isinstance(decide(asked, registry, rules, peer_pid=pid), Refuse)
