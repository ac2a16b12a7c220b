"""Running a sandbox: a socket on 127.0.0.1, hypercorn under Trio, and an orderly end."""

# ruff: noqa: T201 - the command prints where its sandbox is

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import attrs
import trio
from hypercorn.config import Config

from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.gate import HOST, open_listener
from telegram_bus.sandbox.http_app import make_app
from telegram_bus.sandbox.keeping import Keeper, KeepingError
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.scenario import Scenario
from telegram_bus.sandbox.script import ScriptError

__all__ = ["Address", "open_listener", "run_sandbox", "serve_sandbox", "wait_for_end"]

# Longer than the clients' own (httpx: 5 s), so that it is never the server that closes a connection being reused.
KEEP_ALIVE = 75.0


@attrs.frozen
class Address:
    """Where a sandbox is and who is in it."""

    api_root: str
    page: str
    token: str
    chat_id: int
    forum_id: int
    group_id: int
    bot_id: int
    bot_username: str
    pid: int


async def serve_sandbox(
    engine: Engine, listener: socket.socket, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve on `listener`, which is taken over, until cancelled; starts with the address once clients are heard."""
    port = listener.getsockname()[1]
    config = Config()
    config.accesslog = config.errorlog = None
    config.keep_alive_timeout = KEEP_ALIVE
    config.include_server_header = False
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.gate.serve, make_app(engine, port), listener, config)
        task_status.started(_address(engine.world, port))


def run_sandbox(
    port: int, *, as_json: bool, until_eof: bool, data: Path | None = None, scenario: Scenario | None = None
) -> int:
    """Run a sandbox in this process until a signal, the end of stdin or of its scenario; returns the exit code.

    `data` is a directory that keeps its state.
    """
    rng = secrets.SystemRandom()
    with ExitStack() as opened:
        try:
            if scenario is not None:
                scenario.read()
            keeper = None if data is None else opened.enter_context(Keeper(data, _warn))
            engine = Engine(World(rng) if keeper is None else keeper.load(rng))
            listener = open_listener(port)
        except (KeepingError, ScriptError) as error:
            _warn(str(error))
            return 2
        except OSError as error:
            why = error.strerror or error
            _warn(f"the sandbox cannot listen on port {port}: {why}; choose another with --port")
            return 1
        return trio.run(_run, _Running(engine, listener, keeper, scenario), as_json, until_eof)


async def wait_for_end(*, until_eof: bool, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Wait for SIGINT or SIGTERM; with `until_eof` also for the end of stdin, which a starter's death brings."""
    async with trio.open_nursery() as nursery:
        if until_eof:
            nursery.start_soon(_until_eof, nursery.cancel_scope.cancel)
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break


@attrs.frozen
class _Running:
    engine: Engine
    listener: socket.socket
    keeper: Keeper | None
    scenario: Scenario | None


async def _run(running: _Running, as_json: bool, until_eof: bool) -> int:
    code = 0
    async with trio.open_nursery() as nursery:

        async def end(*, task_status: trio.TaskStatus[None]) -> None:
            await wait_for_end(until_eof=until_eof, task_status=task_status)
            nursery.cancel_scope.cancel()

        # Who reads the address may end us at once, so signals are heard before it is printed.
        await nursery.start(end)
        if running.keeper is not None:
            await nursery.start(running.keeper.run, running.engine)
        address: Address = await nursery.start(serve_sandbox, running.engine, running.listener)
        if running.scenario is None:
            _announce(address, as_json=as_json)
        else:
            code = await running.scenario.play(attrs.asdict(address))
            nursery.cancel_scope.cancel()
    return code


def _warn(text: str) -> None:
    print(f"telegram-bus: {text}", file=sys.stderr, flush=True)


async def _until_eof(end: Callable[[], None]) -> None:
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        async for _ in stream:
            pass
    end()


def _address(world: World, port: int) -> Address:
    root = f"http://{HOST}:{port}"
    return Address(
        api_root=root,
        page=f"{root}/",
        token=world.token,
        chat_id=world.owner.id,
        forum_id=world.forum_id,
        group_id=world.group_id,
        bot_id=world.bot.id,
        bot_username=world.bot.username,
        pid=os.getpid(),
    )


def _announce(address: Address, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(attrs.asdict(address)), flush=True)
        return
    lines = (
        "A Telegram Bot API without Telegram. The bot, its token and the people are made up.",
        "",
        f"  chat page   {address.page}",
        f"  API root    {address.api_root}",
        f"  token       {address.token}",
        f"  chat        {address.chat_id}   (the owner's private chat, with threads)",
        f"  forum       {address.forum_id}   (a group with topics, whose administrator the bot is)",
        f"  group       {address.group_id}   (a plain group, whose ordinary member it is)",
        "",
        "In another terminal, a leader for it, in a profile of its own:",
        f"  TELEGRAM_BOT_TOKEN={address.token} \\",
        "  telegram-bus --profile sandbox leader --other-bot \\",
        f"    --api-root {address.api_root} --chat {address.chat_id}",
        "",
        "And in a third one, a program with a thread:",
        "  telegram-bus --profile sandbox follower --name parrot -- cat",
        "",
        "Ctrl-C ends it.",
    )
    print("\n".join(lines), flush=True)
