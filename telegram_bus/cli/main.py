"""Finds the command that was asked for, imports it alone, runs it, and turns faults into exit codes."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from telegram_bus._version import __version__
from telegram_bus.cli import faults

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "main"]

COMMANDS: Final = {
    "demo": ("telegram_bus.cli.demo", "a bot, a leader and two agents on this machine; no token needed"),
    "leader": ("telegram_bus.cli.leader", "run the leader in the foreground"),
    "follower": ("telegram_bus.cli.follower", "give any program a thread of its own"),
    "send": ("telegram_bus.cli.send", "say one thing in a thread, from a script or by hand"),
    "status": ("telegram_bus.cli.status", "who leads, and which followers live"),
    "start": ("telegram_bus.cli.start", "start the leader in the background"),
    "stop": ("telegram_bus.cli.stop", "stop the leader, and keep it stopped"),
    "threads": ("telegram_bus.cli.threads", "show the agents' threads, rename, bind, prove or clean them up"),
    "updates": ("telegram_bus.cli.updates", "show, retry or drop updates that wait or were set aside"),
    "purge": ("telegram_bus.cli.purge", "delete what the leader keeps and does not need any more"),
    "logs": ("telegram_bus.cli.logs", "show the leader's log"),
    "sandbox": ("telegram_bus.cli.sandbox", "a Bot API server with a chat page, for trying and testing"),
}
"""Each command's module, imported only when it is chosen: `telegram-bus status` shall answer at once."""

_DESCRIPTION: Final = "Many programs share one Telegram bot: one leader polls, every follower gets its own chat thread."

_EPILOG: Final = """\
first steps:
  telegram-bus demo                          try it without a bot
  telegram-bus leader --chat 123456789       lead, with your bot's token in
                                             $TELEGRAM_BOT_TOKEN
  telegram-bus follower --name sums -- bc    give a program a thread
  telegram-bus COMMAND --help                everything about a command

exit codes:
  0  done
  1  failed
  2  usage or settings
  3  no leader
  4  refused
  5  the time is over
"""


class _Formatter(argparse.HelpFormatter):
    """Wraps paragraphs to the terminal; a line that is indented stays as it is, and no option is cut at its hyphens."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        words: list[str] = []
        for line in [*text.strip("\n").split("\n"), ""]:
            if line[:1].strip():
                words += line.split()
                continue
            lines += _wrapped(" ".join(words), width)
            words.clear()
            lines.append(line)
        return "\n".join(indent + line for line in lines).rstrip()

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(" ".join(text.split()), width)


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap  # noqa: PLC0415 - as argparse does: for help only

    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints begin with what is wrong, and end with where to read on."""

    def __init__(self, **options: object) -> None:
        options.setdefault("formatter_class", _Formatter)
        super().__init__(**options, allow_abbrev=False)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        self.exit(faults.USAGE, f"{self.prog}: {message}\n{self.format_usage()}more: {self.prog} --help\n")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """A complaint about words that nobody asked for, with the option that may be meant."""
        import difflib  # noqa: PLC0415 - needed for this message only

        word = next((one for one in unknown if one.startswith("-")), unknown[0]).partition("=")[0]
        near = difflib.get_close_matches(word, self._option_string_actions, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        self.error(f"there is no option {word}{hint}" if word.startswith("-") else f"{word!r} is one word too many")


class _CommandParser(_Parser):
    """A command's own parser: the global options are understood behind the command too."""

    def __init__(self, **options: object) -> None:
        about = str(options.get("description") or "")
        if about.startswith("`"):  # a module's docstring begins with the command's name, which stands above anyway
            about = about.partition(": ")[2]
            options["description"] = about[:1].upper() + about[1:]
        super().__init__(**options, conflict_handler="resolve")
        _add_global_options(self, default=argparse.SUPPRESS)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the value is the exit code."""
    try:
        arguments = _parse(sys.argv[1:] if argv is None else list(argv))
        faults.called_with(arguments.home, arguments.profile)
        code = arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as end:  # argparse's own: 0 after --help and --version, 2 after a usage error
        return end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - what is no fault of ours is raised again in there
        return faults.report(error)
    return int(code)


def _parse(argv: list[str]) -> argparse.Namespace:
    head = _head_parser()
    chosen, unknown = head.parse_known_args(argv)
    if unknown:
        head.refuse(unknown)
    if chosen.command in {None, "help"}:
        head.print_help()
        raise SystemExit(0)
    if chosen.command not in COMMANDS:
        _unknown(head, chosen.command)
    parser = _Parser(prog="telegram-bus")
    _add_global_options(parser, default=None)
    module = importlib.import_module(COMMANDS[chosen.command][0])
    subparsers = parser.add_subparsers(parser_class=_CommandParser, required=True)
    module.add_parser(subparsers)
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        subparsers.choices[chosen.command].refuse(unknown)
    return arguments


def _head_parser() -> _Parser:
    """Reads up to the command and knows the commands by name only."""
    width = max(map(len, COMMANDS))
    table = "\n".join(f"  {name:{width}}  {words}" for name, (_, words) in COMMANDS.items())
    parser = _Parser(
        prog="telegram-bus",
        usage="telegram-bus [--profile NAME] [--home DIRECTORY] COMMAND …",
        description=f"{_DESCRIPTION}\n\ncommands:\n{table}",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"telegram-bus {__version__}")
    _add_global_options(parser, default=None)
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _add_global_options(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument(
        "--profile", metavar="NAME", default=default, help="whose bot ($TELEGRAM_BUS_PROFILE, else: default)"
    )
    parser.add_argument(
        "--home",
        metavar="DIRECTORY",
        default=default,
        help="where profiles are kept ($TELEGRAM_BUS_HOME, else the user's state directory)",
    )


def _unknown(parser: argparse.ArgumentParser, command: str) -> NoReturn:
    import difflib  # noqa: PLC0415 - needed for this message only

    near = difflib.get_close_matches(command, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the commands are: {', '.join(COMMANDS)}"
    parser.error(f"there is no command {command!r}; {hint}")
