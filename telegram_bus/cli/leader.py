"""`telegram-bus leader`: run a leader in the foreground; a follower that needs one starts it detached."""

from __future__ import annotations

import argparse
import gc
import logging
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telegram_bus.roles.standby import Relevance

__all__ = ["add_parser"]

_EPILOG = """\
The bot's token is never an option, because others can read a command line. Give it in $TELEGRAM_BOT_TOKEN, or name a
file (--token-file) or a command that prints it (--token-command). What you give once is kept in the profile: the next
time `telegram-bus leader` is enough.

exit codes:
  0  it was told to end (Ctrl-C, SIGTERM, `telegram-bus stop`)
  1  failed, or another process leads this bot
  2  usage or a setting

examples:
  TELEGRAM_BOT_TOKEN=… telegram-bus leader --chat 123456789
  telegram-bus leader --token-command "pass show my-bot" \\
      --chat -1001234567890 --allow 123456789
  telegram-bus leader --replace    after an upgrade
"""


class _NoToken(argparse.Action):
    """Says where a token may be given instead, and does not repeat it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.error(
            "a token is no option, because others can read a command line: "
            "give it in $TELEGRAM_BOT_TOKEN, --token-file or --token-command"
        )


def add_parser(subparsers: Any) -> None:
    """Add the command and an option for each setting that may be one."""
    from telegram_bus.roles.options import OPTIONS  # noqa: PLC0415 - only this command needs the table

    parser = subparsers.add_parser(
        "leader",
        help="run the leader in the foreground",
        usage="telegram-bus leader --chat ID [OPTION …]",
        description="Run the leader: it polls Telegram for one bot and serves the followers of one profile.",
        epilog=_EPILOG,
    )
    for option in OPTIONS:
        if option.flag is None or option.name in ("profile", "home"):
            continue
        if option.is_switch:
            parser.add_argument(
                option.flag, dest=option.name, action="store_const", const=not option.default, help=option.help
            )
            continue
        several = {"nargs": "+", "action": "extend"} if option.several else {}
        default = f" (default: {option.default_text})" if option.default_text else ""
        parser.add_argument(
            option.flag, dest=option.name, metavar=option.metavar, help=f"{option.help}{default}", **several
        )
    parser.add_argument("--standby", action="store_true", help="wait until the leader of this bot is gone, then lead")
    parser.add_argument("--replace", action="store_true", help="end the leader that runs, in order, and take its place")
    parser.add_argument(
        "--drop-backlog", action="store_true", help="forget what people wrote while nobody polled; else it is delivered"
    )
    parser.add_argument(
        "--delete-webhook", action="store_true", help="remove a webhook that takes this bot's updates away from us"
    )
    parser.add_argument("--token", nargs="?", action=_NoToken, help=argparse.SUPPRESS)
    parser.add_argument("--verbose", action="store_true", help="log more")
    parser.add_argument("--detached", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--spare", action="store_const", const=True, dest="as_spare", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Lead until told to stop; the value is the exit code."""
    gc.disable()  # a tenth of the time that a successor takes to come up: what is imported stays anyway
    from telegram_bus import log  # noqa: PLC0415 - as below
    from telegram_bus.core.errors import single_fault  # noqa: PLC0415
    from telegram_bus.home import Home  # noqa: PLC0415
    from telegram_bus.roles.options import OPTIONS  # noqa: PLC0415
    from telegram_bus.roles.settings import load_settings  # noqa: PLC0415 - so that --help stays fast

    given = {
        option.name: value
        for option in OPTIONS
        if option.name not in ("profile", "home") and (value := getattr(arguments, option.name, None)) is not None
    }
    profile = Home(arguments.home).profile(arguments.profile)
    profile.check()
    log.setup(logging.DEBUG if arguments.verbose else logging.INFO, as_json=arguments.detached, file=profile.leader_log)
    standby: bool | Relevance = arguments.standby
    if arguments.as_spare:
        from telegram_bus.roles.standby import spare_of  # noqa: PLC0415

        standby = spare_of(profile)  # before the settings are read: whoever changes them from now on is noticed
    settings = load_settings(profile, given)
    log.hide(settings.token.reveal())

    import trio  # noqa: PLC0415

    from telegram_bus.botapi.poller import Order  # noqa: PLC0415
    from telegram_bus.roles.leader import run_leader  # noqa: PLC0415

    gc.freeze()
    gc.enable()

    async def main() -> str:
        stop = trio.Event()
        with single_fault():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop_on_signals, stop)
                reason = await run_leader(
                    profile,
                    settings,
                    detached=arguments.detached,
                    standby=standby,
                    stop=stop,
                    replace=arguments.replace,
                    order=Order(drop_backlog=arguments.drop_backlog, delete_webhook=arguments.delete_webhook),
                )
                nursery.cancel_scope.cancel(reason)
        return reason

    async def stop_on_signals(stop: trio.Event) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async for _ in signals:
                stop.set()

    trio.run(main)  # why it ended stands in its log
    if not arguments.detached:
        from telegram_bus.cli.faults import say  # noqa: PLC0415

        if profile.stopped.exists():
            say("this leader has ended, and the bus is stopped until: telegram-bus start")
        else:
            say(
                "this leader has ended; its spare, or a follower that needs one, goes on; to end all: telegram-bus stop"
            )
    return 0
