"""`telegram-bus sandbox`: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

COMMAND = [sys.executable, "-m", "telegram_bus", "sandbox"]


def start(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True)


def test_it_prints_where_it_is_as_json_and_ends_at_a_signal() -> None:
    with start("--json") as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())
        with urllib.request.urlopen(address["page"]) as answer:
            assert b"<title>" in answer.read()
        with urllib.request.urlopen(f"{address['api_root']}/bot{address['token']}/getMe") as answer:
            assert json.load(answer)["result"]["id"] == address["bot_id"]
        assert address["pid"] == process.pid
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def test_it_tells_a_person_what_to_do() -> None:
    with start() as process:
        assert process.stdout is not None
        said = ""
        while "Ctrl-C" not in said:
            said += process.stdout.readline()
        assert "http://127.0.0.1:" in said
        assert "telegram-bus --profile sandbox leader --other-bot" in said  # it must not become the user's own bot
        process.terminate()
        assert process.wait(10) == 0


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, "--port", str(port)], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"telegram-bus: the sandbox cannot listen on port {port}: ")
    assert "--port" in done.stderr
