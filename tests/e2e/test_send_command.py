"""`telegram-bus send`, as a script runs it, with a real leader."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from telegram_bus.cli import main as command_line
from telegram_bus.cli.demo_bus import BUS, DemoBus
from telegram_bus.sandbox.client import Client
from tests.e2e.rig import PATIENCE, run


def send(demo: DemoBus, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return run(demo, "send", *arguments, text=text)


def test_a_text_is_sent_once_and_its_ids_are_printed(demo: DemoBus, person: Client) -> None:
    once = ("--name", "backup", "--markdown", "--once", "report")
    first = send(demo, *once, "**done**")
    assert (first.returncode, first.stderr) == (0, "")
    thread = person.wait_for_topic("backup")
    [message] = [one for one in person.messages(thread_id=thread) if "text" in one]
    assert (message["text"], message["entities"][0]["type"]) == ("done", "bold")
    assert first.stdout == f"{message['message_id']}\n"
    assert send(demo, *once, "-", text="something else\n").stdout == first.stdout
    long = send(demo, "--name", "backup", "--json", text="word " * 1_500)
    sent = [json.loads(line) for line in long.stdout.splitlines()]
    assert [one["event"] for one in sent] == ["sent", "sent"]
    assert {one["thread_id"] for one in sent} == {thread}


def test_a_text_grows_while_it_is_read(demo: DemoBus, person: Client) -> None:
    shown = send(demo, "--name", "thinker", "--stream", "--markdown", text="# think\n\n*aloud*")
    assert shown.returncode == 0, shown.stderr
    thread = person.wait_for_topic("thinker")
    [message] = [one for one in person.messages(thread_id=thread) if "text" in one]
    assert (message["text"], shown.stdout) == ("think\n\naloud", f"{message['message_id']}\n")
    assert send(demo, "--name", "thinker", "--stream").stdout == ""


def test_files_are_sent_with_the_text_as_their_caption(demo: DemoBus, person: Client, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    single = send(demo, "--name", "files", "--file", str(tmp_path / "a.txt"), "*here*", "--markdown", "--json")
    assert single.returncode == 0, single.stderr
    both = send(demo, "--name", "files", "--file", str(tmp_path / "a.txt"), "--file", str(tmp_path / "b.txt"))
    thread = person.wait_for_topic("files")
    first, *album = [one for one in person.messages(thread_id=thread) if "document" in one]
    assert (first["caption"], first["caption_entities"][0]["type"]) == ("here", "italic")
    assert [one["document"]["file_name"] for one in album] == ["a.txt", "b.txt"]
    assert both.stdout.split() == [str(one["message_id"]) for one in album]
    missing = send(demo, "--name", "files", "--file", str(tmp_path / "none"))
    assert (missing.returncode, "none" in missing.stderr) == (1, True)


def test_a_name_that_runs_keeps_its_thread_to_itself(demo: DemoBus, person: Client) -> None:
    demo.start("busy", [*BUS, "follower", "--name", "busy", "--", "cat"])
    person.wait_for_topic("busy", within=PATIENCE)
    refused = send(demo, "--name", "busy", "x")
    assert refused.returncode == 2
    assert "'busy' runs" in refused.stderr
    assert "busy-2" not in [topic["name"] for topic in person.topics()]


def test_what_telegram_refuses_ends_it_with_1(demo: DemoBus) -> None:
    refused = send(demo, "--name", "backup", "--html", "<b>x")
    assert refused.returncode == 1
    assert "end tag" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--name", " ", "x"], "--name is empty"),
        (["--name", "x", "--markdown", "--html", "x"], "do not go together"),
        (["--name", "x", "--stream", "x"], "stdin, and nothing else"),
        (["--name", "x", " "], "nothing to say"),
        (["--name", "x", *(["--file", "f"] * 11)], "10 files at most"),
        (["--name", "x", "--html", "--file", "f", "--file", "g"], "plain, or Markdown"),
    ],
)
def test_what_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], reason: str
) -> None:
    assert command_line.main(["--home", str(tmp_path), "send", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_it_gives_up_when_its_time_is_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--home", str(tmp_path), "send", "--name", "x", "--no-start", "--wait", "0.1", "text"]
    assert command_line.main(arguments) == 5
    assert "within 0.1 s" in capsys.readouterr().err
