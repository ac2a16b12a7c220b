"""`--script FILE`: a bot's regression test in a shell script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.sandbox.player import FailedError, Player
from telegram_bus.sandbox.script import ScriptError, Step, read_script
from telegram_bus.testing import Sandbox

Json = dict[str, Any]

EXAMPLES = Path(__file__).parents[2] / "examples"
BOT = [sys.executable, str(EXAMPLES / "tea_bot.py")]


def play(
    tmp_path: Path, *steps: Json, options: tuple[str, ...] = (), bot: list[str] | None = None
) -> tuple[int, list[Json], str]:
    """Exit code, the lines of the output, what was said about errors."""
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(step) + "\n" for step in steps))
    return run(script, *options, "--", *(BOT if bot is None else bot))


def play_here(sandbox: Sandbox, *steps: Json) -> None:
    """Play steps against a bot that answers each /start with a question and buttons."""
    keyboard = {"inline_keyboard": [[{"text": "Green", "callback_data": "g"}]]}
    seen = len(sandbox.messages(by_bot=False))

    def check() -> None:
        nonlocal seen
        said = sandbox.messages(by_bot=False)
        if len(said) > seen:
            seen = len(said)
            sandbox.call("sendMessage", chat_id=sandbox.chat_id, text="Which tea?", reply_markup=keyboard)

    player = Player(sandbox, lambda _: None, check)
    player.play([Step(line, fields) for line, fields in enumerate(steps, 1)])


def run(script: Path, *options: str) -> tuple[int, list[Json], str]:
    command = [sys.executable, "-m", "telegram_bus", "sandbox", "--script", str(script), *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_the_example_passes_and_prints_the_bots_answers() -> None:
    code, lines, errors = run(EXAMPLES / "tea_bot.jsonl", "--", *BOT)
    assert (code, errors) == (0, "")
    assert [line["event"] for line in lines] == [
        "address", "message", "callback_answer", "edit", "message", "message", "end",
    ]  # fmt: skip
    menu, edited = lines[1], lines[3]
    assert (menu["text"], menu["buttons"]) == ("Which tea?", [["Green", "Black"]])
    assert (edited["message_id"], edited["text"]) == (menu["message_id"], "Green tea it is.")
    assert 0 <= menu["t"] <= edited["t"]
    assert lines[4]["thread_id"] > 0
    assert lines[5]["chat_id"] != menu["chat_id"]


def test_an_expectation_that_fails_ends_it_with_1_and_shows_what_came_instead(tmp_path: Path) -> None:
    wish = {"expect": "message", "text": "Coffee", "within": 0.5}
    code, lines, errors = play(tmp_path, {"do": "say", "text": "/start"}, wish)
    assert code == 1
    failed = lines[-1]
    assert (failed["event"], failed["line"], failed["expected"]) == ("failed", 2, wish)
    assert [message["text"] for message in failed["instead"]] == ["Which tea?"]
    assert "line 2" in errors


@pytest.mark.parametrize(
    "wish",
    [
        {"expect": "nothing", "for": 0.5},
        {"expect": "call", "method": "sendPhoto", "within": 0.3},
        {"expect": "call", "method": "sendMessage", "count": 2, "within": 0.3},
        {"expect": "call", "method": "sendMessage", "params": {"text": "Which tea"}, "within": 0.3},
        {"expect": "topic", "name": "nowhere", "within": 0.3},
        {"expect": "message", "is": "Which tea", "within": 0.3},
        {"expect": "message", "like": "^tea", "within": 0.3},
        {"expect": "message", "button": "Red", "within": 0.3},
        {"expect": "message", "chat": "forum", "within": 0.3},
    ],
)
def test_expectations_can_fail(shared: Sandbox, wish: Json) -> None:
    with pytest.raises(FailedError) as caught:
        play_here(shared, {"do": "say", "text": "/start"}, wish)
    assert (caught.value.line, caught.value.expected) == (2, wish)


def test_an_answer_of_before_does_not_count(tmp_path: Path) -> None:
    steps: list[Json] = [
        {"do": "say", "text": "/start"},
        {"expect": "message", "text": "tea"},
        {"do": "settings", "privacy": False},
        {"expect": "message", "text": "tea", "within": 0.4},
    ]
    code, lines, _ = play(tmp_path, *steps)
    assert (code, lines[-1]["line"], lines[-1]["instead"]) == (1, 4, [])


def test_steps_keep_to_their_times(tmp_path: Path) -> None:
    code, lines, _ = play(
        tmp_path,
        {"at": 0.4, "do": "say", "text": "/start"},
        {"expect": "message"},
        {"wait": 0.4},
        {"do": "say", "text": "/start"},
        {"expect": "message"},
    )
    assert code == 0
    assert lines[1]["t"] >= 0.4
    assert lines[2]["t"] >= lines[1]["t"] + 0.4


def test_trouble_can_be_part_of_a_script(tmp_path: Path) -> None:
    code, _, _ = play(
        tmp_path,
        {"do": "faults/order", "does": "refuse", "method": "sendMessage", "code": 403},
        {"do": "say", "text": "/start"},
        {"expect": "call", "method": "sendMessage", "ok": False},
    )
    assert code == 0


def test_a_bot_that_ends_or_never_polls_is_a_failure(tmp_path: Path) -> None:
    ends = [sys.executable, "-c", "raise SystemExit(3)"]
    code, lines, _ = play(tmp_path, {"wait": 30}, bot=ends)
    assert (code, lines[-1]["instead"]) == (1, "the bot ended with exit code 3")
    sleeps = [sys.executable, "-c", "import time; time.sleep(99)"]
    code, lines, _ = play(tmp_path, {"wait": 0}, options=("--bot-within", "0.2"), bot=sleeps)
    assert (code, lines[-1]["expected"]["method"]) == (1, "getUpdates")


def test_a_command_that_cannot_be_run_and_one_without_a_script_are_said(tmp_path: Path) -> None:
    code, _, errors = play(tmp_path, {"wait": 0}, bot=["no-such-program-at-all"])
    assert code == 2
    assert errors.startswith("telegram-bus: cannot run no-such-program-at-all")
    command = [sys.executable, "-m", "telegram_bus", "sandbox", "--", "true"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "telegram-bus: a bot's command goes with --script FILE\n")


def test_the_bots_words_may_hold_the_address(tmp_path: Path) -> None:
    code = "import sys; print(*sys.argv[1:], file=sys.stderr)"
    words = [sys.executable, "-c", code, "--root={api_root}", "{token}", "{chat_id}"]
    _, lines, errors = play(tmp_path, {"wait": 30}, bot=words)
    address = lines[0]
    assert f"--root={address['api_root']} {address['token']} {address['chat_id']}" in errors


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "has no steps"),
        ("# only a comment\n\n", "has no steps"),
        ('{"do": "say"', "line 1: this is no JSON"),
        ('\n["do"]', "line 2: a step is a JSON object"),
        ('{"text": "x"}', 'line 1: a step has "do"'),
        ('{"do": 5}', 'line 1: a step has "do"'),
        ('{"expect": "rain"}', "expect is one of message, call, topic, nothing"),
        ('{"expect": "message", "txt": "x"}', "expecting a message has no txt"),
        ('{"expect": "message", "like": "("}', "like is a regular expression"),
        ('{"wait": -1}', "wait is a number of seconds"),
        ('{"expect": "nothing", "for": "1"}', "for is a number of seconds"),
    ],
)
def test_a_script_that_cannot_be_is_refused_with_its_line(tmp_path: Path, content: str, complaint: str) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(content)
    with pytest.raises(ScriptError, match=complaint):
        read_script(script)


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ({"do": "say", "user": "Nobody", "text": "x"}, "line 1: nobody is called 'Nobody'"),
        ({"do": "say", "chat": "attic", "text": "x"}, "line 1: chat is one of private, forum, group"),
        ({"do": "say", "thread": "none", "text": "x"}, "line 1: there is no thread 'none'"),
        ({"do": "press", "message": "gone", "button": "x"}, 'no earlier step has "as": "gone"'),
        ({"do": "say", "text": ""}, "line 1: there is nothing to say"),
    ],
)
def test_a_step_that_cannot_be_done_is_refused_with_its_line(shared: Sandbox, step: Json, complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        play_here(shared, step)


def test_a_step_that_cannot_be_done_ends_it_with_2(tmp_path: Path) -> None:
    code, _, errors = play(tmp_path, {"do": "say", "text": ""})
    assert (code, errors) == (2, "telegram-bus: line 1: there is nothing to say: the text is empty\n")
