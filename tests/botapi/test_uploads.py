"""Files up and down: streamed from and to open files, with their faults, and past nobody's messages."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import h11
import pytest
import trio
from python_multipart.multipart import parse_options_header

from telegram_bus.botapi.sender import Sender
from telegram_bus.botapi.transport import open_api
from telegram_bus.botapi.uploads import Upload
from telegram_bus.core.errors import AnswerLost, ApiError, BusError, CommitUnknown, NotSent, RequestRefused
from telegram_bus.core.permissions import repeatable
from tests.botapi.loopback import Request, serve

TOKEN = "123456789:SENTINEL-token_AAAAAAAAAAAAAAAAAAAAA"
CHAT = 5


@pytest.fixture
def file() -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as made:
        yield made


def upload(file: IO[bytes], content: bytes, *, size: int | None = None, name: str = "a.txt") -> Upload:
    file.write(content)
    file.flush()
    return Upload(field="document", name=name, descriptor=file.fileno(), size=len(content) if size is None else size)


async def accept(request: Request) -> None:
    await request.ok({"message_id": 1, "chat": {"id": CHAT}})


def parts(request: Request) -> dict[str, tuple[bytes, bytes]]:
    """Each part of a form: what its heading says beside the name, and its content."""
    kind, options = parse_options_header(request.headers["content-type"])
    assert kind == b"multipart/form-data"
    found = {}
    for piece in request.body.split(b"--" + options[b"boundary"])[1:-1]:
        head, _, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        disposition = parse_options_header(head.split(b"\r\n")[0].partition(b": ")[2])[1]
        found[disposition[b"name"].decode()] = (disposition.get(b"filename", b""), content.removesuffix(b"\r\n"))
    return found


async def test_a_file_goes_out_as_a_part_of_the_form(file: IO[bytes]) -> None:
    """From its beginning, whatever its position, which says afterwards how far it was; each attempt sends all of it."""
    content = os.urandom(700_001)
    sent = upload(file, content, name='odd "name"\r\n.bin')
    async with serve(accept) as server, open_api(TOKEN, root=server.root) as api:
        for _ in range(2):
            result = await api.call("sendDocument", {"chat_id": CHAT, "caption": "ä"}, files=(sent,))
    assert result["message_id"] == 1
    assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == len(content)
    for request in server.requests:
        found = parts(request)
        assert found["document"][1] == content
        assert found["caption"][1].decode() == "ä"
        assert found["chat_id"][1] == b"5"
        assert int(request.headers["content-length"]) == len(request.body)
        assert b"\r\n.bin" not in request.body.partition(b"\r\n\r\n")[0]


async def test_only_the_announced_size_is_sent(file: IO[bytes]) -> None:
    """A log that grows meanwhile."""
    async with serve(accept) as server, open_api(TOKEN, root=server.root) as api:
        await api.call("sendDocument", {}, files=(upload(file, b"0123456789", size=4),))
    assert parts(server.requests[0])["document"][1] == b"0123"


async def test_a_file_that_became_shorter_is_refused_and_surely_not_sent(file: IO[bytes]) -> None:
    short = upload(file, b"0123456789", size=400_000)
    async with serve(accept) as server, open_api(TOKEN, root=server.root) as api:
        with pytest.raises(RequestRefused, match="shorter"):
            await api.call("sendDocument", {}, files=(short,))
        assert await api.call("getMe") == {"message_id": 1, "chat": {"id": CHAT}}
    assert server.methods == ["getMe"]


async def test_the_sender_sends_files_past_nobody(file: IO[bytes]) -> None:
    """Messages of the same chat do not wait for an upload; two uploads wait for each other."""
    gate = trio.Event()

    async def respond(request: Request) -> None:
        if request.method == "sendDocument":
            await gate.wait()
        await accept(request)

    sent = upload(file, b"x")
    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api, trio.open_nursery() as nursery:
        sender = Sender(api, repeatable=repeatable)
        await nursery.start(sender.run)
        ended: list[str] = []

        async def call(method: str, **options: Any) -> None:
            await sender.call(method, {"chat_id": CHAT}, CHAT, **options)
            ended.append(method)

        async with trio.open_nursery() as calls:
            calls.start_soon(lambda: call("sendDocument", files=(sent,)))
            calls.start_soon(lambda: call("sendDocument", files=(sent,)))
            await server.arrived(1)
            await call("sendMessage")
            assert ended == ["sendMessage"]
            assert server.methods == ["sendDocument", "sendMessage"]
            gate.set()
        assert ended == ["sendMessage", "sendDocument", "sendDocument"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("answer", "fault"),
    [("413", ApiError), ("reset", CommitUnknown)],
)
async def test_a_failed_upload_is_told_and_not_repeated(file: IO[bytes], answer: str, fault: type[Exception]) -> None:
    async def respond(request: Request) -> None:
        if answer == "reset":
            await request.reset()
        else:
            await request.answer(b"<html>413 Request Entity Too Large</html>", status=413)

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api, trio.open_nursery() as nursery:
        sender = Sender(api, repeatable=repeatable)
        await nursery.start(sender.run)
        with pytest.raises(fault):
            await sender.call("sendDocument", {"chat_id": CHAT}, CHAT, files=(upload(file, b"x"),))
        nursery.cancel_scope.cancel()
    assert len(server.requests) == 1


async def fetch(respond: Any, most: int = 1_000_000) -> bytes:
    got = bytearray()

    async def write(at: int, piece: bytes) -> None:
        await trio.lowlevel.checkpoint()
        assert at == len(got)
        got.extend(piece)

    fault: BusError | None = None
    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api:
        try:
            assert await api.download("documents/a b.txt", write, most) == len(got)
        except BusError as raised:
            fault = raised
    if fault is not None:
        raise fault
    assert server.requests[0].path == f"/file/bot{TOKEN}/documents/a%20b.txt"
    return bytes(got)


async def test_a_file_comes_down_in_pieces() -> None:
    content = os.urandom(600_000)

    async def respond(request: Request) -> None:
        await request.answer(content)

    assert await fetch(respond) == content


async def test_the_faults_of_a_download_say_what_happened() -> None:
    async def gone(request: Request) -> None:
        await request.refuse(404, "Not Found")

    async def cut(request: Request) -> None:
        head = h11.Response(status_code=200, headers=[("content-length", "100")])
        await request.raw(head, h11.Data(b"only this"))
        await request.reset()

    async def odd(request: Request) -> None:
        await request.answer(b"captive portal", status=204 + 98)

    with pytest.raises(ApiError, match="Not Found"):
        await fetch(gone)
    with pytest.raises(AnswerLost) as lost:
        await fetch(cut)
    assert "SENTINEL" not in str(lost.value)
    with pytest.raises((ApiError, AnswerLost)):
        await fetch(odd)
    with pytest.raises(NotSent) as unreachable:
        async with open_api(TOKEN, root="http://127.0.0.1:1") as api:
            await api.download("x", accept, 1)  # type: ignore[arg-type]
    assert "SENTINEL" not in str(unreachable.value)


@pytest.mark.parametrize("answer", ["part", "whole", "another part", "nothing there"])
async def test_a_download_goes_on_where_the_server_can_and_else_begins_anew(answer: str) -> None:
    content, got, asked = os.urandom(300_000), bytearray(b"x" * 100_000), list[str]()

    async def respond(request: Request) -> None:
        wanted = dict(request.headers).get("range", "")
        asked.append(wanted)
        if not wanted or answer == "whole":
            await request.answer(content)
        elif answer == "nothing there":
            await request.answer(b"", status=416)
        else:
            first = 100_000 if answer == "part" else 0
            head = [("content-range", f"bytes {first}-299999/300000"), ("content-length", str(300_000 - first))]
            await request.raw(
                h11.Response(status_code=206, headers=head), h11.Data(content[first:]), h11.EndOfMessage()
            )

    async def write(at: int, piece: bytes) -> None:
        await trio.lowlevel.checkpoint()
        got[at : at + len(piece)] = piece

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api:
        assert await api.download("x", write, 1_000_000, 100_000) == 300_000
    assert asked == ["bytes=100000-"] if answer in ("part", "whole") else ["bytes=100000-", ""]
    assert bytes(got[100_000:]) == content[100_000:]
    assert (bytes(got) == content) is (answer != "part")
