"""A leader without a bot, run as a process of its own: real locks, real lease, and a socket that acknowledges anything.

    stand_in_leader.py MODE …ignored options… --profile NAME …

Modes, joined by "+": lead, fail (says why and exits), mute (never answers), still (never renews), deaf (to SIGTERM).
Each start adds a line to `starts` beside leader.log, in which it says whether it is detached.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import trio

from telegram_bus import host
from telegram_bus.core.errors import BusError
from telegram_bus.core.values import ProtocolIdentity
from telegram_bus.home import Home, mint_secret
from telegram_bus.roles.holder import Times
from telegram_bus.roles.leadership import hold_leadership
from telegram_bus.roles.settings import load_settings

IDENTITY = ProtocolIdentity(protocol_version=1, runtime_build="stand-in")


async def acknowledge(stream: trio.SocketStream, *, operator: str | None = None) -> None:
    """Refuse whatever is asked, unless it is the operator who wants this process to end."""
    buffer = b""
    with suppress(trio.BrokenResourceError):  # whoever has its answer may leave
        async for data in stream:
            buffer += data
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                request = json.loads(line)
                obeys = request["kind"] == "x.operator.stop" and operator is not None and request["auth"] == operator
                ack = {"kind": "bus.ack", "requestId": request["requestId"], "ok": obeys}
                await stream.send_all(json.dumps(ack).encode() + b"\n")
                if obeys:
                    os.kill(os.getpid(), signal.SIGTERM)


async def listen(path: Path) -> trio.SocketListener:
    """A listener at `path`, in the place of whatever was there."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(os.fspath(path))
    sock.listen(100)
    return trio.SocketListener(sock)


async def serve(listener: trio.SocketListener, operator: str | None = None) -> None:
    await trio.serve_listeners(partial(acknowledge, operator=operator), [listener])


async def lead(modes: set[str], profile_name: str) -> None:
    profile = Home().profile(profile_name)
    settings = load_settings(profile, {}, {})
    times = Times(renew_every=1000.0 if "still" in modes else 0.05, probe=0.2)
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with hold_leadership(profile, settings, times=times) as term, trio.open_nursery() as nursery:
            listener = await listen(profile.leader_socket)
            if "mute" not in modes:
                secret = mint_secret(profile.operator_secret) if "obey" in modes else None
                nursery.start_soon(serve, listener, secret)
            await term.publish_record(profile.leader_socket, IDENTITY)
            print("leading", flush=True)
            async for _ in signals:
                if "deaf" not in modes:
                    nursery.cancel_scope.cancel()


def main() -> int:
    modes = set(sys.argv[1].split("+"))
    name = sys.argv[sys.argv.index("--profile") + 1]
    profile = Home().profile(name)
    facts = {
        "pid": os.getpid(),
        "birth": host.process_birth_id(os.getpid()),
        "session": os.getsid(0),
        "cwd": str(Path.cwd()),
        "options": sys.argv[2:],
        "umask": os.umask(0o077),
        "stdin": str(Path("/proc/self/fd/0").readlink()),
        "descriptors": sorted(int(fd.name) for fd in Path("/proc/self/fd").iterdir()),
        "environment": dict(os.environ),
    }
    with (profile.logs_dir / "starts").open("a") as starts:
        starts.write(json.dumps(facts) + "\n")
    if "fail" in modes:
        print(json.dumps({"level": "error", "message": "the token was revoked"}), file=sys.stderr)
        return 1
    try:
        trio.run(lead, modes, name)
    except BusError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
