"""Files, albums and captions, row by row: the M rows of the Bot API contract that concern them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest

from telegram_bus.sandbox import model_files
from telegram_bus.sandbox import model_people as people
from telegram_bus.sandbox.args import Upload
from telegram_bus.sandbox.images import image_size
from telegram_bus.sandbox.model_doings import UnknownError
from tests.sandbox.talk import Rows, Talk

ROWS = Rows()
Json = dict[str, Any]
TEXT = Upload("notes.txt", b"some notes")
SENDING = {
    "sendPhoto": "photo",
    "sendDocument": "document",
    "sendAudio": "audio",
    "sendVoice": "voice",
    "sendVideo": "video",
    "sendAnimation": "animation",
    "sendVideoNote": "video_note",
    "sendSticker": "sticker",
}


def picture(width: int = 3, height: int = 2, filler: bytes = b"") -> Upload:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return Upload("picture.png", head + filler)


def upload_for(kind: str) -> Upload:
    return picture() if kind == "photo" else Upload(f"file.{kind}", kind.encode())


def send(talk: Talk, method: str = "sendDocument", **params: Any) -> Json:
    sent: Json = talk.call(method, **{"chat_id": talk.private.id, SENDING[method]: TEXT, **params})
    return sent


def refused(talk: Talk, method: str, **params: Any) -> str:
    return talk.refused(method, **{"chat_id": talk.private.id, **params})


@pytest.mark.parametrize("check", ROWS.params)
def test_contract(check: Callable[[Talk], None]) -> None:
    check(Talk())


@ROWS.row("M2")
def a_caption_is_limited_in_scalars_after_parsing(talk: Talk) -> None:
    assert len(send(talk, caption="😀" * 1024)["caption"]) == 1024
    for caption in ("😀" * 1025, "x" * 1025):
        assert refused(talk, "sendDocument", document=TEXT, caption=caption) == "message caption is too long"
    bold = send(talk, caption=" <b>" + "x" * 1024 + "</b> ", parse_mode="HTML")
    assert bold["caption_entities"] == [{"offset": 0, "length": 1024, "type": "bold"}]
    assert not {"text", "entities"} & set(bold)
    given = send(talk, caption="abc", caption_entities=[{"type": "italic", "offset": 1, "length": 2}])
    assert given["caption_entities"] == [{"type": "italic", "offset": 1, "length": 2}]


@ROWS.row("M5")
def a_broken_caption_is_refused_as_a_text_is(talk: Talk) -> None:
    complaint = refused(talk, "sendDocument", document=TEXT, caption="<b>x", parse_mode="HTML")
    assert complaint == "can't parse entities: Can't find end tag corresponding to start tag \"b\""


@ROWS.row("M6")
def captions_and_files_are_edited_where_there_are_some(talk: Talk) -> None:
    sent = send(talk, "sendPhoto", photo=picture(), caption="one")
    there = {"chat_id": talk.private.id, "message_id": sent["message_id"]}
    assert talk.refused("editMessageText", text="x", **there) == "there is no text in the message to edit"
    assert talk.call("editMessageCaption", caption="two", **there)["caption"] == "two"
    assert "message is not modified" in talk.refused("editMessageCaption", caption="two", **there)
    assert "caption" not in talk.call("editMessageCaption", **there)
    media = {"type": "document", "media": "attach://new", "caption": "three"}
    changed = talk.call("editMessageMedia", media=json.dumps(media), new=TEXT, **there)
    assert (changed["document"]["file_name"], changed["caption"]) == ("notes.txt", "three")
    assert "photo" not in changed
    text = {"chat_id": talk.private.id, "message_id": talk.send("text")["message_id"]}
    assert talk.refused("editMessageCaption", caption="x", **text) == "there is no caption in the message to edit"
    assert "document" in talk.call("editMessageMedia", media=media, new=TEXT, **text)
    voice = send(talk, "sendVoice", voice=Upload("a.ogg", b"ogg"))
    spoken = {"chat_id": talk.private.id, "message_id": voice["message_id"]}
    assert talk.refused("editMessageMedia", media=media, new=TEXT, **spoken) == "message media can't be edited"


@ROWS.row("M15")
def a_file_comes_back_by_its_path(talk: Talk) -> None:
    file = send(talk)["document"]
    found = talk.call("getFile", file_id=file["file_id"])
    assert found["file_path"].startswith("documents/file_")
    assert found["file_size"] == len(TEXT.content)
    stored = talk.world.files.at(found["file_path"])
    assert stored is not None
    assert stored.content == TEXT.content
    assert talk.refused("getFile") == "file_id not specified"
    assert talk.refused("getFile", file_id="nonsense") == "invalid file_id"


@ROWS.row("M15")
def what_is_too_big_to_download_is_refused(talk: Talk) -> None:
    just = send(talk, document=Upload("a.bin", bytes(20 << 20)))["document"]
    assert talk.call("getFile", file_id=just["file_id"])["file_size"] == 20 << 20
    big = send(talk, document=Upload("a.bin", bytes((20 << 20) + 1)))["document"]
    assert talk.refused("getFile", file_id=big["file_id"]) == "file is too big"


@ROWS.row("M15")
def a_forgotten_file_is_unavailable_and_can_still_be_sent(talk: Talk) -> None:
    first = send(talk, document=Upload("a.bin", b"x" * 1000))["document"]
    stored = talk.world.files.find(first["file_id"])
    assert stored is not None
    stored.content = None
    unavailable = "wrong file_id or the file is temporarily unavailable"
    assert talk.refused("getFile", file_id=first["file_id"]) == unavailable
    assert send(talk, document=first["file_id"])["document"] == first


@ROWS.row("M14")
def uploads_come_as_the_argument_or_attached(talk: Talk) -> None:
    for method, kind in SENDING.items():
        upload = upload_for(kind)
        direct = send(talk, method, **{kind: upload})
        attached = send(talk, method, **{kind: "attach://part", "part": upload})
        again = send(talk, method, **{kind: talk.world.files.find(_file_id(direct, kind)).file_id})  # type: ignore[union-attr]
        assert kind in direct
        assert direct[kind] == again[kind]
        assert _file_id(attached, kind) != _file_id(direct, kind)
        missing = f"there is no {kind.replace('_', ' ')} in the request"
        assert refused(talk, method) == missing
        assert refused(talk, method, **{kind: "attach://nothing"}) == missing
        assert refused(talk, method, **{kind: Upload("empty", b"")}) == "file must be non-empty"
        url = {kind: "https://example.org/file.png"}
        assert refused(talk, method, **url) == "failed to get HTTP URL content"
        assert refused(talk, method, **{kind: "nonsense"}) == "wrong file identifier/HTTP URL specified"


def _file_id(message: Json, kind: str) -> str:
    shown = message[kind]
    return str((shown[0] if kind == "photo" else shown)["file_id"])


@ROWS.row("M14")
def a_file_is_not_sent_as_another_kind(talk: Talk) -> None:
    file_id = send(talk)["document"]["file_id"]
    assert refused(talk, "sendPhoto", photo=file_id) == "can't use file of type Document as Photo"


@ROWS.row("M14")
def a_photo_has_to_be_a_picture_of_sensible_size(talk: Talk) -> None:
    assert send(talk, "sendPhoto", photo=picture(40, 30))["photo"][0]["width"] == 40
    assert refused(talk, "sendPhoto", photo=TEXT) == "IMAGE_PROCESS_FAILED"
    for sides in ((0, 5), (9000, 1001), (1, 21)):
        assert refused(talk, "sendPhoto", photo=picture(*sides)) == "PHOTO_INVALID_DIMENSIONS"
    huge = refused(talk, "sendPhoto", photo=picture(3, 2, bytes(10 << 20)))
    assert huge == f"file of size {(10 << 20) + 24} bytes is too big for a photo; the maximum size is 10485760 bytes"


def album(*kinds: str, **more: Any) -> Json:
    media = [{"type": kind, "media": f"attach://p{number}", **more} for number, kind in enumerate(kinds)]
    parts = {f"p{number}": upload_for(kind) for number, kind in enumerate(kinds)}
    return {"media": json.dumps(media), **parts}


@ROWS.row("albums")
def an_album_is_several_messages_with_one_group(talk: Talk) -> None:
    thread = talk.topic()
    where = {"chat_id": talk.private.id, "message_thread_id": thread}
    sent = talk.call("sendMediaGroup", **where, **album("photo", "video", "photo", caption="c"))
    assert len({message["media_group_id"] for message in sent}) == 1
    assert [message["caption"] for message in sent] == ["c"] * 3
    assert {message["message_thread_id"] for message in sent} == {thread}
    assert [message["message_id"] for message in sent] == list(range(thread + 1, thread + 4))
    (alone,) = talk.call("sendMediaGroup", **where, **album("photo"))
    assert "media_group_id" not in alone
    there = {"chat_id": talk.private.id, "message_id": sent[0]["message_id"]}
    film = {"type": "video", "media": "attach://v"}
    assert "video" in talk.call("editMessageMedia", media=film, v=Upload("v.mp4", b"v"), **there)
    paper = {"type": "document", "media": "attach://d"}
    assert talk.refused("editMessageMedia", media=paper, d=TEXT, **there) == "can't change media type in the album"


@ROWS.row("albums")
def an_album_has_its_rules(talk: Talk) -> None:
    before = dict(talk.private.messages)
    cases = {
        "there are no messages to send": {"media": "[]"},
        'parameter "media" is required': {},
        "too many messages to send as an album": album(*["photo"] * 11),
        "document can't be mixed with other media types": album("photo", "document"),
        "audio can't be mixed with other media types": album("photo", "audio"),
        "can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup": album("animation", "photo"),
        'can\'t parse InputMedia: type "sticker" is unsupported': album("sticker", "photo"),
        "can't parse InputMedia: media not found": {"media": [{"type": "photo", "media": "attach://no"}]},
        "message caption is too long": album("photo", "photo", caption="x" * 1025),
        'failed to send message #2 with the error message "IMAGE_PROCESS_FAILED"': album("photo", "photo")
        | {"p1": TEXT},
    }
    for complaint, params in cases.items():
        assert refused(talk, "sendMediaGroup", **params) == complaint
    above = [{"type": "photo", "media": "attach://a", "show_caption_above_media": flag} for flag in (True, False)]
    mixed = refused(talk, "sendMediaGroup", media=above, a=picture())
    assert mixed == "parameter show_caption_above_media must be the same for all messages"
    assert talk.private.messages == before


@ROWS.row("files of people")
def what_people_send_reaches_the_bot_with_its_bytes(talk: Talk) -> None:
    files = [
        people.Sent("photo", picture(), "first"),
        people.Sent("video", Upload("v.mp4", b"vv"), "", {"duration": 3}),
    ]
    sent = people.send_files(talk.world, talk.private, talk.owner, files, talk.now)
    came = [update["message"] for update in talk.updates()]
    assert came == sent
    assert (came[0]["caption"], came[1]["video"]["duration"]) == ("first", 3)
    assert len({message["media_group_id"] for message in came}) == 1
    found = talk.call("getFile", file_id=came[1]["video"]["file_id"])
    stored = talk.world.files.at(found["file_path"])
    assert stored is not None
    assert stored.content == b"vv"
    for wrong in (
        [],
        [files[0], people.Sent("document", TEXT)],
        [people.Sent("nonsense", TEXT)],
        [people.Sent("photo", TEXT)],
        [people.Sent("document", TEXT, "x" * 1025)],
    ):
        with pytest.raises(UnknownError):
            people.send_files(talk.world, talk.private, talk.owner, wrong, talk.now)


def test_privacy_mode_looks_at_captions_too() -> None:
    talk = Talk()
    name = talk.world.bot.username
    for caption in ("plain", f"for @{name}"):
        people.send_files(talk.world, talk.group, talk.owner, [people.Sent("document", TEXT, caption)], talk.now)
    assert [update["message"]["caption"] for update in talk.updates()] == [f"for @{name}"]


def test_a_thumbnail_is_kept_when_it_is_usable() -> None:
    talk = Talk()
    shown = send(talk, "sendDocument", thumbnail="attach://t", t=picture(90, 60))["document"]["thumbnail"]
    assert (shown["width"], shown["height"]) == (90, 60)
    assert talk.call("getFile", file_id=shown["file_id"])["file_path"].startswith("thumbnails/")
    for unusable in (TEXT, picture(90, 60, bytes(204_800))):
        assert "thumbnail" not in send(talk, "sendDocument", thumbnail=unusable)["document"]


def test_the_bytes_of_the_oldest_files_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "KEPT_BYTES", 2500)
    monkeypatch.setattr(model_files, "KEPT_FILES", 4)
    talk = Talk()
    sent = [send(talk, document=Upload("a.bin", bytes(1000)))["document"]["file_id"] for _ in range(6)]
    store = talk.world.files
    assert store.bytes == sum(len(file.content or b"") for file in store) == 2000
    assert [store.find(file_id) is not None for file_id in sent] == [False] * 2 + [True] * 4
    assert talk.refused("getFile", file_id=sent[3]) == "wrong file_id or the file is temporarily unavailable"
    assert talk.call("getFile", file_id=sent[5])["file_size"] == 1000


def test_sizes_of_pictures_are_read_from_their_headers() -> None:
    jpeg = b"\xff\xd8\xff\xe0" + struct.pack(">H", 4) + b"ab" + b"\xff\xc0" + struct.pack(">HBHH", 11, 8, 20, 30)
    assert image_size(jpeg) == (30, 20)
    assert image_size(b"GIF89a" + struct.pack("<HH", 7, 8)) == (7, 8)
    assert image_size(b"BM" + bytes(16) + struct.pack("<ii", 5, -6)) == (5, 6)
    lossless = (5 - 1) | (9 - 1) << 14
    webp = {
        b"VP8X": bytes(4) + bytes(4) + (99).to_bytes(3, "little") + (49).to_bytes(3, "little"),
        b"VP8L": bytes(4) + b"\x2f" + lossless.to_bytes(4, "little"),
        b"VP8 ": bytes(4) + bytes(6) + struct.pack("<HH", 64, 32),
    }
    sizes = [image_size(b"RIFF\0\0\0\0WEBP" + name + rest) for name, rest in webp.items()]
    assert sizes == [(100, 50), (5, 9), (64, 32)]
    for whole in (jpeg, picture().content, b"RIFF\0\0\0\0WEBPVP8 ", b"RIFF\0\0\0\0WEBPnone"):
        for length in range(min(len(whole), 20)):
            assert image_size(whole[:length]) is None
