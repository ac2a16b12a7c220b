"""One request without Trio, attrs or a codec, for commands that live a tenth of a second."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any, Final

from telegram_bus import host
from telegram_bus.core.errors import AnswerLost, LineTooLong, NotSent
from telegram_bus.core.framing import LineSplitter

__all__ = ["request_plain"]

READ: Final = 64 * 1024
ANSWER_MAX: Final = 32 * 1024 * 1024  # as a client of ours takes it
BUSY_PAUSE: Final = 0.005  # before connecting again to a server whose backlog is full


def request_plain(path: str | os.PathLike[str], payload: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Send one envelope (as JSON has it, with its `requestId`) to the socket at `path`; return its ack.

    Raises NotSent when nothing has left this process, AnswerLost when something has but no answer came, in
    `seconds` or at all.
    """
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        _connect(sock, path, deadline)
        line = json.dumps(payload, separators=(",", ":")).encode() + b"\n"
        sent = 0
        try:
            while sent < len(line):
                sock.settimeout(_left(deadline))
                sent += sock.send(line[sent:] if sent else line)
            return _answer(sock, payload["requestId"], deadline)
        except TimeoutError as error:
            fault = AnswerLost if sent else NotSent
            raise fault(f"no answer from {path} in {seconds:g} s") from error
        except OSError as error:
            fault = AnswerLost if sent else NotSent
            raise fault(f"the connection to {path} broke: {error.strerror or error}") from error


def _connect(sock: socket.socket, path: str | os.PathLike[str], deadline: float) -> None:
    while True:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            sock.connect(os.fsencode(path))
            break
        except BlockingIOError:  # the backlog is full
            if time.monotonic() > deadline:
                raise NotSent(f"the server at {path} takes no connection") from None
            time.sleep(BUSY_PAUSE)
        except OSError as error:
            raise NotSent(f"nobody listens at {path}: {error.strerror or error}") from error
        except ValueError as error:  # what somebody wrote down as a path is none
            raise NotSent(f"nobody can listen at {path!r}") from error
    _, uid = host.peer_credentials(sock)
    if uid not in {0, os.geteuid()}:
        raise NotSent(f"{path} is served by user {uid}, not by us")


def _answer(sock: socket.socket, request_id: str, deadline: float) -> dict[str, Any]:
    lines = LineSplitter(ANSWER_MAX)
    while True:
        sock.settimeout(_left(deadline))
        data = sock.recv(READ)
        if not data:
            raise AnswerLost("the server closed the connection without an answer")
        try:
            answers = [_ack(line) for line in lines.feed(data)]
        except LineTooLong as error:
            raise AnswerLost(f"the answer was refused: {error}") from error
        for ack in answers:
            if ack.get("requestId") == request_id:
                return ack
            if ack.get("requestId") == "invalid":
                raise AnswerLost(f"the server did not understand the request: {ack.get('message')}")


def _ack(line: bytes) -> dict[str, Any]:
    try:
        ack = json.loads(line)
    except ValueError as error:
        raise AnswerLost(f"the answer is no JSON: {error}") from error
    return ack if isinstance(ack, dict) else {}


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
