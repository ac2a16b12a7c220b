"""Scenarios 98, 100 and 101 with real processes: no token anywhere, no other user, nobody else's things."""

from __future__ import annotations

import json
import os
import socket as sockets
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.e2e.rig import PATIENCE, Machine, until

# Asks for what is not its own, prints each answer, and then stays.
INTRUDER = """
import json, sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name="intruder") as bus:
        await bus.wait_serving()
        for method, params in json.load(open(sys.argv[1])):
            try:
                await bus.call(method, **params)
            except telegram_bus.BusError as fault:
                print("fault", type(fault).__name__, fault, flush=True)
            else:
                print("done", method, flush=True)
        try:
            await bus.download(sys.argv[2])
        except telegram_bus.BusError as fault:
            print("fault", type(fault).__name__, fault, flush=True)
        print("end", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""

# Connects as somebody else and asks who leads.
STRANGER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(sys.argv[1])
    peer.sendall(b'{"kind":"x.status.get","requestId":"1","auth":"guessed"}\\n')
    sys.stdout.buffer.write(peer.recv(1000))
"""


def _connect(path: Path) -> None:
    with sockets.socket(sockets.AF_UNIX) as peer:
        peer.connect(str(path))


def as_nobody(work: Callable[[], object]) -> str:
    """What another user of the machine meets: the name of the fault, "nothing" where it may do that."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        fault = "nothing"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            work()
        except OSError as error:
            fault = type(error).__name__
        os.write(writing, fault.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        return answer.read()


def audit(machine: Machine) -> list[dict[str, object]]:
    """What the audit log holds."""
    path = machine.profile.audit_log
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def intrude(machine: Machine, calls: list[tuple[str, dict[str, object]]], file_id: str) -> list[str]:
    """What a follower is answered that asks for all this."""
    wanted = machine.root / "calls.json"
    wanted.write_text(json.dumps(calls))
    intruder = machine.start(INTRUDER, str(wanted), file_id)
    until(lambda: "end" in intruder.said())
    intruder.kill()
    return intruder.said()


def test_scenario_101_what_is_another_s_is_refused_with_a_reason_noted_and_not_done(machine: Machine) -> None:
    machine.lead()
    machine.follow("victim")
    thread = machine.wait_thread("victim")
    machine.say("secret words", thread)
    answer = machine.wait_answer("got: secret words", thread)
    sent = machine.sandbox.send_file(name="secret.txt", content=b"secret", thread_id=thread)
    chat = machine.sandbox.chat_id
    theirs: dict[str, object] = {"message_thread_id": thread}
    calls: list[tuple[str, dict[str, object]]] = [
        ("sendMessage", {**theirs, "text": "x"}),
        ("sendMessage", {"text": "x", "reply_parameters": {"message_id": answer["message_id"]}}),
        ("sendMessage", {"text": "x", "reply_parameters": {"message_id": 1, "chat_id": 7}}),
        ("sendMediaGroup", {"media": [{"type": "photo", "media": "http://127.0.0.1/x"}]}),
        ("sendDocument", {"document": sent["document"]["file_id"]}),
        ("copyMessage", {"from_chat_id": chat, "message_id": sent["message_id"]}),
        ("editMessageText", {"message_id": answer["message_id"], "text": "x"}),
        ("deleteMessage", {"message_id": answer["message_id"]}),
        ("deleteForumTopic", theirs),
        ("getUpdates", {}),
        ("logOut", {}),
        ("banChatMember", {"user_id": machine.sandbox.chat_id}),
    ]
    before = len(machine.sandbox.record(kind="call"))
    lines = intrude(machine, calls, sent["document"]["file_id"])
    assert [line.split()[:2] for line in lines[:-1]] == [["fault", "RequestRefused"]] * (len(calls) + 1)
    for line, (method, _) in zip(lines, calls, strict=False):
        assert f" {method}: " in line, line
    until(lambda: len(audit(machine)) == len(calls) + 1)
    noted = audit(machine)
    assert [entry["method"] for entry in noted] == [*(method for method, _ in calls), "getFile"]
    assert {entry["who"] for entry in noted} == {"intruder"}
    assert [entry["field"] for entry in noted[:5]] == [
        "message_thread_id",
        "reply_parameters.message_id",
        "reply_parameters.message_id",
        "media.0.media",
        "document",
    ]
    assert "secret" not in machine.profile.audit_log.read_text()
    made = machine.sandbox.record(kind="call")[before:]
    assert not {entry["method"] for entry in made} & ({method for method, _ in calls} - {"sendMessage"})
    assert "x" not in [entry["params"].get("text") for entry in made]  # the victim itself sends an answer
    shown = machine.run("logs", "--audit")
    assert "who=intruder" in shown.stdout
    assert "method=sendMediaGroup field=media.0.media rule=must be an address on the internet" in shown.stdout


def test_scenario_100_another_user_of_the_machine_gets_nowhere(machine: Machine) -> None:
    machine.lead()
    machine.wait_status()
    socket = Path(json.loads(machine.profile.leader_json.read_text())["endpoint"]).resolve()
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    for directory in (socket.parent, machine.profile.directory, machine.profile.logs_dir):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(machine.profile.follower_secret.stat().st_mode) == 0o600
    if os.geteuid() == 0:  # only root can be somebody else
        assert as_nobody(lambda: _connect(socket)) == "PermissionError"
        assert as_nobody(machine.profile.follower_secret.read_bytes) == "PermissionError"
        assert as_nobody(machine.profile.audit_log.read_bytes) == "PermissionError"
    wrong = subprocess.run([sys.executable, "-c", STRANGER, str(socket)], capture_output=True, timeout=60, check=True)
    assert json.loads(wrong.stdout)["ok"] is False
    until(lambda: audit(machine))
    [entry] = audit(machine)
    assert (entry["who"], entry["method"], entry["field"]) == (None, "x.status.get", "auth")


def test_scenario_98_the_token_is_in_no_output_whatever_goes_wrong(machine: Machine) -> None:
    sandbox = machine.sandbox
    machine.lead()
    machine.wait_status()
    outputs = [machine.run("leader", "--chat", "5", "--api-root", "http://127.0.0.1:1").stderr]  # another leads
    sandbox.bad_gateway("getUpdates", times=1)
    for number, fault in enumerate(("drop_answer", "drop_call", "cut_answer", "bad_gateway", "hang")):
        agent = machine.follow(f"agent-{number}")
        thread = machine.wait_thread(f"agent-{number}")
        agent.wait_said("state serving")
        getattr(sandbox, fault)("sendMessage", times=1)
        machine.say("break", thread)
        agent.wait_said("got break")
        if fault == "hang":
            outputs.append(Path(f"/proc/{agent.process.pid}/environ").read_bytes().decode("utf-8", "replace"))
            machine.kill_leader()
            agent.wait_said("state no leader")
        else:
            agent.process.wait(PATIENCE)  # with a traceback: nobody knows whether its answer came
    machine.wait_status()
    outputs.append("\n".join(intrude(machine, [("getUpdates", {}), ("sendMessage", {"text": 5})], "none")))
    sandbox.refuse("getUpdates", 401, "Unauthorized", times=1)
    sandbox.refuse_connections(0.5)
    for command in (["status"], ["status", "--json"], ["logs", "--audit"], ["updates", "list"]):
        done = machine.run(*command)
        outputs += [done.stdout, done.stderr]
    leader = int(json.loads(machine.profile.leader_json.read_text())["pid"])
    outputs.append(Path(f"/proc/{leader}/cmdline").read_bytes().decode("utf-8", "replace"))
    secret = sandbox.token.partition(":")[2]
    assert len(secret) > 20
    for text in outputs:
        assert secret not in text
    for path in machine.root.rglob("*"):
        if path.is_file() and path != machine.profile.config_toml:
            assert secret.encode() not in path.read_bytes(), path
