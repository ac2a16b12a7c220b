"""The daily commands and wrapped programs, against a sandbox and a real leader."""

from __future__ import annotations

import json
import subprocess
import sys

from telegram_bus.cli.demo_bus import BUS, DemoBus
from tests.e2e.rig import PATIENCE, run, until


def follow(demo: DemoBus, name: str, *program: str, **variables: str) -> int:
    demo.start(name, [*BUS, "follower", "--name", name, "--", *program], variables)
    return demo.thread_of(name)


def end(demo: DemoBus, name: str) -> int:
    process = demo.processes.pop(name)
    process.terminate()
    return process.wait(PATIENCE)


def test_status_shows_leader_and_followers_to_people_and_programs(demo: DemoBus) -> None:
    thread = follow(demo, "Build Server", "cat")
    shown = run(demo, "status")
    assert shown.returncode == 0
    assert "leader    serving" in shown.stdout
    assert "Build Server  build-server" in shown.stdout
    assert "\x1b" not in shown.stdout
    status = json.loads(run(demo, "status", "--json").stdout)
    assert status["pid"] == demo.processes["leader"].pid
    assert status["bot"]["id"] == demo.person.address["bot_id"]
    assert [(each["key"], each["thread_id"]) for each in status["followers"]] == [("build-server", thread)]
    assert {"version", "state", "detail", "epoch", "since_ms", "chat", "last_poll_ms", "waiting"} <= set(status)
    assert end(demo, "Build Server") == 0


def test_status_loads_nothing_heavy_to_ask_a_leader(demo: DemoBus) -> None:
    until(lambda: run(demo, "status").returncode == 0)
    heavy = ("trio", "telegram", "rich", "attrs", "cattrs", "orjson", "httpx", "sqlite3", "asyncio")
    code = f"""if True:
        import sys
        from telegram_bus.__main__ import main
        code = main(["status"])
        print(code, sorted(set({heavy!r}) & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], env=demo.environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_a_program_gets_neither_token_nor_secrets(demo: DemoBus) -> None:
    token = demo.person.address["token"]
    secret = demo.profile.follower_secret.read_text().strip()
    leaky = {"TELEGRAM_BOT_TOKEN": token, "HIDDEN": f"bot{token}/getMe", "DEEPER": f"<{secret}>", "HARMLESS": "yes"}
    script = "env; read -r line"
    thread = follow(demo, "env", "sh", "-c", script, **leaky)
    text = demo.person.reply(thread, 0, PATIENCE, containing="HARMLESS")["text"]
    lines = text.splitlines()
    assert {"HARMLESS=yes", "TELEGRAM_BUS_PARENT=env"} <= set(lines)
    assert token not in text
    assert secret not in text
    assert not [line for line in lines if line.startswith(("HIDDEN=", "DEEPER=", "TELEGRAM_BOT_TOKEN="))]
    assert end(demo, "env") == 0


def test_a_message_for_a_program_that_is_down_waits_for_its_next_start(demo: DemoBus) -> None:
    thread = follow(demo, "once", "sh", "-c", "read -r line; echo got $line; exit 5")
    seen = demo.person.say("first", thread)
    assert demo.person.reply(thread, seen, PATIENCE)["text"] == "got first"
    assert demo.person.reply(thread, seen, PATIENCE, containing="ended")["text"] == "sh ended with exit status 5."
    assert demo.processes.pop("once").wait(PATIENCE) == 1
    seen = demo.person.say("second", thread)
    demo.start("once", [*BUS, "follower", "--name", "once", "--", "sh", "-c", "read -r line; echo now $line"])
    assert demo.person.reply(thread, seen, PATIENCE)["text"] == "now second"
    assert demo.processes.pop("once").wait(PATIENCE) == 0


def test_stderr_is_logged_and_a_stopped_program_is_announced(demo: DemoBus) -> None:
    thread = follow(demo, "noisy", "sh", "-c", "echo complaint >&2; echo ready; exec sleep 600")
    assert demo.person.reply(thread, 0, PATIENCE)["text"] == "ready"
    assert end(demo, "noisy") == 0
    last = demo.person.reply(thread, 0, PATIENCE, containing="ended")["text"]
    assert last == "sh was ended by SIGTERM (signal 15)."
    assert (demo.profile.follower_dir("noisy") / "program.log").read_text() == "complaint\n"


def test_a_pseudo_terminal_is_for_programs_that_hold_back_output(demo: DemoBus) -> None:
    # python blocks its output when it is piped, and not on a terminal
    script = "for line in __import__('sys').stdin: print('terminal', line.strip())"
    demo.start("pty", [*BUS, "follower", "--name", "pty", "--pty", "--", "python3", "-c", script])
    thread = demo.thread_of("pty")
    seen = demo.person.say("hello", thread)
    assert demo.person.reply(thread, seen, PATIENCE)["text"] == "terminal hello"
    assert end(demo, "pty") == 0


def test_a_stopped_bus_stays_stopped_until_it_is_started(demo: DemoBus) -> None:
    thread = follow(demo, "patient", "cat")
    leader = demo.processes.pop("leader")
    stopped = run(demo, "stop")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert f"pid {leader.pid}" in stopped.stdout
    assert leader.wait(PATIENCE) == 0
    status = run(demo, "status")
    assert status.returncode == 3
    assert "was stopped" in status.stderr
    again = run(demo, "stop")
    assert again.returncode == 0
    assert "no leader was running" in again.stdout
    until(lambda: "patient: stopped" in demo.log("patient").read_text())

    inside = run(demo, "start", TELEGRAM_BUS_PARENT="patient")
    assert inside.returncode == 2
    assert run(demo, "status").returncode == 3

    started = run(demo, "start")
    assert started.returncode == 0, started.stderr
    pid = json.loads(run(demo, "status", "--json").stdout)["pid"]
    assert f"pid {pid}" in started.stdout
    assert run(demo, "start").stdout == started.stdout
    assert demo.thread_of("patient") == thread
    seen = demo.person.say("still there?", thread)
    assert demo.person.reply(thread, seen, PATIENCE)["text"] == "still there?"

    logs = run(demo, "logs", "-n", "100")
    assert logs.returncode == 0
    assert "INFO" in logs.stdout
    assert demo.person.address["token"] not in logs.stdout
    assert end(demo, "patient") == 0
    assert run(demo, "stop").returncode == 0
