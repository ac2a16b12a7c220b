"""Between a follower and a program that speaks JSON lines: updates and answers in, requests out (docs/jsonl.md)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from telegram_bus.agent import Bus, Keyboard, Media, MemberInfo, SentMessage, Update
from telegram_bus.cli.program import Program
from telegram_bus.cli.wrapping import FAREWELL, SILENCE
from telegram_bus.core.errors import BusError, LineTooLong
from telegram_bus.core.framing import LineSplitter
from telegram_bus.core.jsonl import BadRequest, Request, error_of, line, parse

if TYPE_CHECKING:
    from telegram_bus.followers.held import HeldStream

__all__ = ["serve_jsonl"]

PROTOCOL: Final = 1
LONGEST_LINE: Final = 80 << 20
"""A file of 50 MB as base64, with room."""

AT_ONCE: Final = 32
"""Requests being worked on; the program's output is not read while there are so many."""

OPEN_UPDATES: Final = 1_000
"""Updates that the program was told and has not done; it is told no more before it has done one."""

IN_ORDER: Final = frozenset(
    "send reply edit delete react send_file edit_file send_album stream stream_end call tell".split()
)
"""What changes the chat happens in the order in which it was asked for; everything else at once."""


async def serve_jsonl(bus: Bus, program: Program) -> int:
    """Serves the program until it has ended and what it asked for is done; returns how, as `Program.wait`."""
    async with trio.open_nursery() as around:
        desk = _Desk(bus, program, around)
        await desk.tell("hello", protocol=PROTOCOL, key=bus.key, name=bus.name)
        around.start_soon(desk.tell_states)
        around.start_soon(desk.tell_updates)
        async with trio.open_nursery() as requests:
            async with trio.open_nursery() as reading:
                reading.start_soon(desk.read, requests)
                status = await program.wait()
                desk.program_ended()
            requests.cancel_scope.deadline = trio.current_time() + FAREWELL
        around.cancel_scope.cancel("the program ended")
    return status


class _Desk:
    """What the two sides owe each other: open updates, and requests that are not answered."""

    def __init__(self, bus: Bus, program: Program, around: trio.Nursery) -> None:
        self._bus = bus
        self._program = program
        self._around = around
        self._writing = trio.Lock()
        self._open: dict[str, Update] = {}
        self._one_done = trio.Event()
        self._places = trio.Semaphore(AT_ONCE)
        self._turn: trio.Event | None = None  # set when the last of those in order has been answered
        self._watching = False
        self._typing_scope = trio.CancelScope()
        self._streams: dict[str, HeldStream] = {}
        self._reading = trio.CancelScope()
        self._ended = False
        self._doings: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "send": self._send,
            "reply": self._reply,
            "edit": self._edit,
            "delete": self._delete,
            "react": self._react,
            "offer_commands": self._offer_commands,
            "typing": self._typing,
            "activity": self._activity,
            "ask": self._ask,
            "answer": self._answer,
            "send_file": self._send_file,
            "edit_file": self._edit_file,
            "send_album": self._send_album,
            "stream": self._stream,
            "stream_end": self._stream_end,
            "download": self._download,
            "call": self._call,
            "tell": self._tell_agent,
            "queue": self._queue,
            "members": self._members,
            "watch_members": self._watch_members,
            "state": self._state,
            "hand_over": self._hand_over,
            "done": self._done,
        }

    # to the program

    async def tell(self, event: str, **fields: Any) -> bool:
        """Writes one line; False where the program does not read any more."""
        async with self._writing:
            return await self._program.write(line({"event": event, **fields}))

    async def tell_states(self) -> None:
        """Each state, with the chat and thread once they are known."""
        async for _ in self._bus.states():
            await self.tell("state", **self._facts())

    async def tell_updates(self) -> None:
        """Each update, once in a run of the program, as long as it reads them."""
        async for update in self._bus:
            self._open[update.id] = update
            if not await self.tell("update", **_shown(update)):
                return
            while len(self._open) >= OPEN_UPDATES:
                await self._one_done.wait()

    # from the program

    async def read(self, requests: trio.Nursery) -> None:
        """Begins what the program asks for, until nobody can write any more."""
        lines = LineSplitter(LONGEST_LINE)
        while True:
            data = b""
            with trio.CancelScope(deadline=self._patience()) as self._reading:
                data = await self._program.read()
            try:
                asked = lines.feed(data) if data else lines.feed(b"\n") if lines.pending else []
            except LineTooLong as fault:
                await self._fail(None, BadRequest(str(fault)))
                await self._program.end()
                return
            for text in asked:
                if text.strip():
                    await self._begin(text, requests)
            if not data:
                return

    def program_ended(self) -> None:
        """What it wrote is still read; what others write who hold its output, only while they do so at once."""
        self._ended = True
        self._reading.deadline = min(self._reading.deadline, self._patience())

    def _patience(self) -> float:
        return trio.current_time() + SILENCE if self._ended else math.inf

    async def _begin(self, text: bytes, requests: trio.Nursery) -> None:
        try:
            request = parse(text)
        except BadRequest as fault:
            await self._fail(fault.id, fault)
            return
        if request.do != "ask":  # a person may take days, and others shall have a place meanwhile
            await self._places.acquire()
        before, after = None, None
        if request.do in IN_ORDER:
            before, after = self._turn, trio.Event()
            self._turn = after
        requests.start_soon(self._work, request, before, after)

    async def _work(self, request: Request, before: trio.Event | None, after: trio.Event | None) -> None:
        try:
            if before is not None:
                await before.wait()
            fields = dict(request.fields)
            if isinstance(fields.get("buttons"), dict):
                fields["buttons"] = Keyboard(**fields["buttons"])
            if fields.pop("progress", False) and request.id is not None:
                fields["progress"] = partial(self._tell_progress, request.id)
            result = await self._doings[request.do](fields)
        except (BusError, BadRequest, OSError, ValueError, TypeError) as fault:
            await self._fail(request.id, fault)
        else:
            if request.id is not None:
                await self.tell("answer", id=request.id, ok=True, result=result)
        finally:
            if request.do != "ask":
                self._places.release()
            if after is not None:
                after.set()

    async def _fail(self, ident: Any, fault: BaseException) -> None:
        await self.tell("answer", id=ident, ok=False, error=error_of(fault))

    # what it may ask for

    async def _send(self, fields: dict[str, Any]) -> Any:
        return _sent(await self._bus.send(**fields))

    async def _reply(self, fields: dict[str, Any]) -> Any:
        return _sent(await self._update(fields).reply(**fields))

    async def _edit(self, fields: dict[str, Any]) -> Any:
        return _sent(await self._bus.edit(fields.pop("message_id"), **fields))

    async def _delete(self, fields: dict[str, Any]) -> None:
        await self._bus.delete(fields["message_id"])

    async def _react(self, fields: dict[str, Any]) -> None:
        await self._bus.react(fields["message_id"], fields.get("emoji"))

    async def _offer_commands(self, fields: dict[str, Any]) -> None:
        await self._bus.offer_commands(fields["commands"])

    async def _typing(self, fields: dict[str, Any]) -> None:
        self._typing_scope.cancel("something else was asked for")
        seconds = fields.get("seconds")
        if seconds is None:
            await self._bus.typing()
        elif seconds:
            self._typing_scope = trio.CancelScope()
            self._around.start_soon(self._type, seconds, self._typing_scope)

    async def _type(self, seconds: float, scope: trio.CancelScope) -> None:
        with scope:
            async with self._bus.typing_for(seconds):
                await trio.sleep(seconds)

    async def _activity(self, fields: dict[str, Any]) -> None:
        await self._bus.activity(fields.get("text"), needs_person=fields.get("needs_person", False))

    async def _ask(self, fields: dict[str, Any]) -> Any:
        answer = await self._bus.ask_person(fields.pop("question"), **fields)
        return {"answer": str(answer), "value": answer.value, "number": answer.number, "sender": answer.sender}

    async def _answer(self, fields: dict[str, Any]) -> None:
        await self._update(fields).answer(**fields)

    async def _send_file(self, fields: dict[str, Any]) -> Any:
        return _sent(await self._bus.send_file(_source(fields), **fields))

    async def _edit_file(self, fields: dict[str, Any]) -> Any:
        return _sent(await self._bus.edit_file(fields.pop("message_id"), _source(fields), **fields))

    async def _send_album(self, fields: dict[str, Any]) -> Any:
        items = [Media(_source(item), **item) for item in map(dict, fields.pop("files"))]
        return [_sent(one) for one in await self._bus.send_album(items, **fields)]

    async def _stream(self, fields: dict[str, Any]) -> None:
        name, text = fields.pop("stream"), fields.pop("text")
        if name not in self._streams:
            from telegram_bus.followers.held import hold_stream  # noqa: PLC0415 - for those who need it

            block = self._update(fields).stream if "update" in fields else self._bus.stream
            self._streams[name] = await self._around.start(hold_stream, block(**fields))
        elif fields:
            raise BadRequest(f"stream {name[:100]!r} is open: only text is added to it", field=next(iter(fields)))
        await self._streams[name].stream.write(text)

    async def _stream_end(self, fields: dict[str, Any]) -> Any:
        held = self._streams.pop(fields["stream"], None)
        if held is None:
            raise BadRequest(f"stream {fields['stream'][:100]!r} is not open: begin it with do: stream", field="stream")
        await held.stream.write(fields.get("text", ""))
        message = await held.end(give_up=fields.get("give_up", False))
        return None if message is None else _sent(message)

    def _tell_progress(self, ident: str | int, sent: int, size: int) -> None:
        """The last of it, that all has been sent, its answer says."""
        if sent < size:
            self._around.start_soon(self._say_progress, ident, sent, size)

    async def _say_progress(self, ident: str | int, sent: int, size: int) -> None:
        await self.tell("progress", id=ident, sent=sent, size=size)

    async def _download(self, fields: dict[str, Any]) -> Any:
        if "update" in fields:
            files = self._update(fields).files
            if not files:
                raise BadRequest("download: update has no file", field="update")
            fields = {"name": files[0].name, **fields, "file_id": files[0].file_id}
        return {"path": str(await self._bus.download(fields.pop("file_id"), **fields))}

    async def _call(self, fields: dict[str, Any]) -> Any:
        return await self._bus.call(fields["method"], **fields.get("params", {}))

    async def _tell_agent(self, fields: dict[str, Any]) -> Any:
        return _sent(await self._bus.tell(fields["agent"], fields["text"]))

    async def _queue(self, _fields: dict[str, Any]) -> Any:
        return await self._bus.queue()

    async def _members(self, _fields: dict[str, Any]) -> Any:
        return _listed(await self._bus.members())

    async def _watch_members(self, _fields: dict[str, Any]) -> None:
        if not self._watching:
            self._watching = True
            self._around.start_soon(self._tell_members)

    async def _tell_members(self) -> None:
        async for members in self._bus.watch_members():
            await self.tell("members", members=_listed(members))

    async def _state(self, fields: dict[str, Any]) -> Any:
        with trio.move_on_after(fields.get("wait", 0.0)):
            await self._bus.wait_serving()
        return self._facts()

    async def _hand_over(self, fields: dict[str, Any]) -> dict[str, Any]:
        update = self._update(fields)
        recipient = await update.hand_over(fields["to"], note=fields.get("note"))
        self._close(update)
        return recipient._asdict()

    async def _done(self, fields: dict[str, Any]) -> None:
        update = self._update(fields)
        await update.done()
        self._close(update)

    def _close(self, update: Update) -> None:
        self._open.pop(update.id, None)
        self._one_done.set()
        self._one_done = trio.Event()

    def _update(self, fields: dict[str, Any]) -> Update:
        ident = fields.pop("update")
        if ident not in self._open:
            raise BadRequest(f"update {ident[:100]!r} is not open: it is done, or was never told", field="update")
        return self._open[ident]

    def _facts(self) -> dict[str, Any]:
        target = self._bus.target
        return {
            "state": self._bus.state,
            "reason": self._bus.reason,
            "chat_id": target.chat_id if target is not None else None,
            "thread_id": target.thread_id if target is not None else None,
        }


def _source(fields: dict[str, Any]) -> Any:
    path, content = fields.pop("path", None), fields.pop("base64", None)
    return content if path is None else path


def _shown(update: Update) -> dict[str, Any]:
    shown = {
        "id": update.id,
        "kind": update.kind,
        "text": update.text,
        "command": None if update.command is None else update.command[0],
        "data": update.data,
        "sender": update.sender,
        "age": update.age,
        "files": [attrs.asdict(file) for file in update.files],
        "message": update.message,
    }
    if len(update.parts) > 1:
        shown["parts"] = list(update.parts)
    if update.follows is not None:
        shown["follows"] = update.follows
    if update.handed_by is not None:
        shown |= {"handed_by": update.handed_by, "note": update.note}
    return shown if update.message is update.raw else shown | {"raw": update.raw}


def _sent(message: SentMessage) -> dict[str, Any]:
    sent = {
        "chat_id": message.chat_id,
        "message_id": message.message_id,
        "thread_id": message.thread_id,
        "message": message.raw,
    }
    return sent | {"parts": [_sent(attrs.evolve(one, rest=())) for one in message.parts]} if message.rest else sent


def _listed(members: tuple[MemberInfo, ...]) -> list[dict[str, Any]]:
    return [attrs.asdict(member) for member in members]
