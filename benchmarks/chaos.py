"""Nothing lost, nothing done twice, whoever dies: a bus under load, with processes killed, frozen, starved of disk.

    python -m benchmarks.chaos --seconds 60 --seed 1 [--kill leader,follower,freeze,disk]
        [--mode updates|sends|handoff|all] [--cover]

Twenty threads, each with a follower of its own, in five processes of four followers: twenty processes would spend on
their starts what the two cores of a small machine have, and the bus would be idle while they come up. Two leader
candidates stand by in turns; sometimes neither is there, and a follower starts one. In mode `all` a person answers
questions, writes where nobody is, and deletes a thread; in `handoff` agents and leaders hand over. With `--cover`
every crash point has to strike. The last line is JSON; the exit status is 1 when a promise was broken, or when less
happened than was asked for.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from benchmarks._bus import Place
from benchmarks._chaos_check import DEAD, LOST, Call, Facts, album_items, late, notice_of, undone, violations
from benchmarks._chaos_people import Person
from benchmarks._chaos_rig import CHOOSING, HANDING, SENDING, Rig, Slot, python
from telegram_bus.cli.asking import ask
from telegram_bus.core.errors import BusError
from telegram_bus.crash import FOLLOWER_POINTS, LEADER_POINTS, POINTS
from telegram_bus.testing import Sandbox

__all__ = ["main"]

PROCESSES, EACH = 5, 4
CANDIDATES = 2
KINDS = ("leader", "follower", "freeze", "disk")
WEIGHTS = {"leader": 4, "follower": 4, "freeze": 1, "disk": 1}
ASKING = {"updates": 0.0, "all": 0.25, "sends": 0.5, "handoff": 0.0}  # the share of updates that want an answer…
HANDED = {"all": 0.04, "handoff": 0.2}  # … that are given to another follower
QUESTIONS = {"all": 0.01}  # … that ask a person something
TOLD = {"all": 0.1, "handoff": 0.5}  # the share of leaders' ends that are handovers in order
ALBUMS = 0.03  # the share of what is said that is an album of 2 to 5 files
ENDINGS = {"all": ("?",), "sends": ("?", "??", "!")}  # … of which kind (`PARTS` of the agent)
EXTRA = 15.0  # seconds beyond those asked for in which everything ends; of them …
STARTING = 5.0  # … before the traffic
DRAIN = 5.0  # … after it, at least
CLOSING = 2.0  # … for the last judgement
LANES = 4  # connections that things are said on
PATIENCE = 60.0
LONG_FREEZE = 20.0  # a leader that is frozen for so long is ended by its followers, within 14 s
QUIET = 1.5  # seconds after which what was handed to a dead process will not be handed over again
SHOWN = 30
LONG_TERM = 6.0  # seconds in which a leader passes what there is to pass
LIMITS = "overall=10000/1 private=10000/1 group=10000/1 typing=10000/1 burst=1000"  # the sandbox's flood control is off


@define(eq=False)
class Run:
    """One run, as it goes on."""

    options: argparse.Namespace
    sandbox: Sandbox
    rig: Rig
    chance: random.Random
    began: float
    threads: dict[str, int] = field(factory=dict)
    said: dict[str, list[str]] = field(factory=dict)
    record: dict[int, dict[str, Any]] = field(factory=dict)
    person: Person = field(init=False)
    albums: int = 0
    events: int = 0
    started: float = 0.0
    drained: float = 0.0
    deadline: float = 0.0
    _version: int = 0
    _diary: dict[str, tuple[list[dict[str, Any]], int]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.person = Person(
            sandbox=self.sandbox,
            chance=self.chance,
            record=self.record,
            diary=self.diary,
            said=self.said.setdefault(LOST, []),
        )

    @property
    def points(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The crash points of leaders and of followers that something in this mode leads past."""
        mode = self.options.mode
        never = set() if mode in ("all", "sends") else set(SENDING)
        never |= set() if mode in HANDED else HANDING
        never |= set() if mode == "all" else CHOOSING
        leader, follower = ([one for one in some if one not in never] for some in (LEADER_POINTS, FOLLOWER_POINTS))
        return tuple(leader), tuple(follower)

    @property
    def place(self) -> Place:
        return self.rig.place

    def _until(self, now: float) -> float:
        """When the traffic ends: on a machine that is so busy that starting took long, it is shorter and denser."""
        seconds = float(self.options.seconds)
        self.deadline = self.began + seconds + float(self.options.extra) - CLOSING
        until = max(min(now, self.began + STARTING) + seconds, now + seconds / 2)
        self.deadline = max(self.deadline, until + DRAIN)
        return until

    async def live(self) -> None:
        """Start everybody, make trouble under load, wait until what was said is done, end everybody."""
        async with trio.open_nursery() as nursery:
            try:
                nursery.start_soon(self._cancel_on_signal, nursery.cancel_scope)
                await self._start(nursery)
                nursery.start_soon(self._collect)
                nursery.start_soon(self.rig.thaw)
                for doing in self._doings():
                    nursery.start_soon(doing)
                until = self._until(time.monotonic())
                self.started = time.monotonic() - self.began
                self.rig.calm = self.person.calm = False
                async with trio.open_nursery() as busy:
                    for lane in range(LANES):
                        busy.start_soon(self._talk, lane, until)
                    busy.start_soon(self._trouble, until)
                self.rig.calm = self.person.calm = True
                await self._drain()
            finally:
                self.rig.calm = self.person.calm = True
                with trio.CancelScope(shield=True):
                    await self.rig.end()
                    await self._collect_once()
            nursery.cancel_scope.cancel("it is over")

    def _doings(self) -> list[Callable[[], Awaitable[None]]]:
        person, mode = self.person, self.options.mode
        some: list[Callable[[], Awaitable[None]]] = [person.answer]
        some += [person.have_bad_days] if mode in ("all", "sends") else []
        some += [person.write_to_nobody, person.delete_threads] if mode == "all" else []
        return [*some, self._hurry] if self.options.cover else some

    async def _hurry(self) -> None:
        """So that all points have their turn: no leader stays for long that has none, or that passes none of its."""
        led: tuple[int | None, float] = (None, 0.0)
        while True:
            await trio.sleep(0.2)
            pid, now = self.rig.leader(), time.monotonic()
            if pid != led[0]:
                led = (pid, now)
            if pid is not None and not self.rig.calm and now - led[1] > (LONG_TERM if self.rig.is_armed(pid) else 0.5):
                self.rig.kill(pid, "leader")

    async def _cancel_on_signal(self, scope: trio.CancelScope) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                scope.cancel("told to end")

    async def _start(self, nursery: trio.Nursery) -> None:
        self.place.profile.ensure()
        sandbox = self.sandbox
        options = ["--api-root", sandbox.api_root, "--chat", str(sandbox.chat_id), "--linger", "120"]
        options += ["--limits", LIMITS, "--clean-up", "delete", *([] if self.options.spare else ["--no-spare"])]
        points = self.points
        wanted = [name in self.options.kill for name in ("leader", "follower")]
        cover = self.options.cover
        for number in range(2 * CANDIDATES if cover else CANDIDATES):
            slot = Slot(
                name=f"candidate-{number}",
                command=python("telegram_bus", "leader", *options, "--detached", "--standby"),
                points=points[0] if wanted[0] else (),
                pauses=(0.0,) if cover else (0.0, 0.0, 4.0),
                environ={"TELEGRAM_BOT_TOKEN": sandbox.token},
                waits=number > 0,
            )
            nursery.start_soon(self.rig.keep, slot)
            while self.rig.leader() is None:  # noqa: ASYNC110
                await trio.sleep(0.02)
        (self.place.root / "diary").mkdir()
        for number in range(PROCESSES):
            keys = [f"f{number * EACH + one}" for one in range(EACH)]
            self.said.update({key: [] for key in keys})
            diary = self.place.root / "diary" / f"{number}.jsonl"
            command = python("benchmarks._chaos_agent", str(diary), *keys)
            slot = Slot(f"followers-{number}", command, points[1] if wanted[1] else (), (0.0, 0.1, 0.5))
            nursery.start_soon(self.rig.keep, slot)
        diary = self.place.root / "diary" / "new.jsonl"
        nursery.start_soon(self.rig.keep, Slot("newcomers", python("benchmarks._chaos_agent", str(diary)), (), (0.0,)))
        for key in self.said.keys() - {LOST}:
            find = partial(sandbox.wait_for_topic, key, within=PATIENCE)
            self.threads[key] = await trio.to_thread.run_sync(find)

    # -- what happens

    async def _talk(self, lane: int, until: float) -> None:
        """Say things in some threads, at a steady pace; what could not be said in time is made up for."""
        keys = list(self.threads)[lane::LANES]
        begin, wanted = time.monotonic(), -(-round(self.options.rate * self.options.seconds) // LANES)
        pace, count = wanted / max(0.1, until - begin), 0  # of updates
        with closing(http.client.HTTPConnection(self.sandbox.api_root.removeprefix("http://"))) as connection:
            while count < wanted and time.monotonic() < self.deadline - DRAIN:
                due = min(wanted, int((time.monotonic() - begin) * pace) + 1)
                said = [self._next_texts(keys) for _ in range(min(10, due - count))]
                await trio.to_thread.run_sync(self._say, connection, said)
                count += sum(len(texts) for _, texts in said)
                await trio.sleep(max(0.0, begin + count / pace - time.monotonic()))

    def _next_texts(self, keys: list[str]) -> tuple[str, list[str]]:
        """Where to say something, and what: the text of a message, or the captions of an album."""
        key = self.chance.choice(keys)
        said = self.said[key]
        if self.chance.random() < ALBUMS:
            texts = [f"{key}:{len(said) + number}=" for number in range(self.chance.randrange(2, 6))]
        else:
            texts = [f"{key}:{len(said)}{self._ending(key)}"]
        said += texts
        self.albums += len(texts) > 1
        return key, texts

    def _ending(self, key: str) -> str:
        """What is to be done because of a message: nothing, or what the end of its text says."""
        mode, chance = self.options.mode, self.chance.random()
        if (chance := chance - HANDED.get(mode, 0.0)) < 0:
            return ">" + self.chance.choice([other for other in self.threads if other != key])
        if (chance := chance - QUESTIONS.get(mode, 0.0)) < 0:
            return "#"
        return self.chance.choice(ENDINGS[mode]) if chance < ASKING[mode] else ""

    def _say(self, connection: http.client.HTTPConnection, said: list[tuple[str, list[str]]]) -> None:
        for key, texts in said:
            files = [{"name": "a.txt", "content": "YQ==", "caption": text} for text in texts]
            doing, what = ("send", {"files": files}) if len(texts) > 1 else ("say", {"text": texts[0]})
            body = json.dumps({**what, "thread_id": self.threads[key]})
            connection.request("POST", f"/sandbox/{doing}", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(f"the sandbox refused {body}: {answer!r}")

    async def _trouble(self, until: float) -> None:
        """As many acts as were asked for, at random moments; those of crash points come on top."""
        wanted, begin = self.options.kills, time.monotonic()
        kinds = [kind for kind in KINDS if kind in self.options.kill]
        weights = [WEIGHTS[kind] for kind in kinds]
        moments = sorted(self.chance.uniform(begin + 0.2, until - 0.5) for _ in range(wanted))
        async with trio.open_nursery() as nursery:
            for moment in moments:
                await trio.sleep(max(0.0, moment - time.monotonic()))
                kind = self.chance.choices(kinds, weights)[0]
                if await self._act(kind, until, nursery):
                    self.events += 1

    async def _act(self, kind: str, until: float, nursery: trio.Nursery) -> bool:
        leads = kind == "leader" or (kind in {"freeze", "disk"} and self.chance.random() < 0.5)
        find, who = (self.rig.leader, "leader") if leads else (self.rig.follower, "follower")
        with trio.move_on_after(PATIENCE):
            while (pid := find()) is None:  # noqa: ASYNC110 - another process
                await trio.sleep(0.02)
        if pid is None:
            return False
        left = until - time.monotonic()
        seconds = min(self.chance.uniform(0.2, 3.0), max(0.1, left))
        match kind:
            case "freeze":
                if leads and left > LONG_FREEZE and self.chance.random() < 0.3:
                    seconds, who = LONG_FREEZE, "leader until it is ended"
                elif not leads and left > LONG_FREEZE:
                    seconds *= 3  # beyond the 5 s after which it is no member any more
                nursery.start_soon(self.rig.freeze, pid, who, seconds)
            case "disk":
                nursery.start_soon(self.rig.starve, pid, who, seconds)
            case _ if leads and self.chance.random() < TOLD.get(self.options.mode, 0.0):
                self.rig.tell(pid)
            case _:
                self.rig.kill(pid, who)
        return True

    async def _drain(self) -> None:
        """Until everything is done, or what is left will not be."""
        begin = quiet_since = time.monotonic()
        before = None
        while time.monotonic() < self.deadline:
            left = undone(self.said, self.diary())
            live = {process.pid for process in self.rig.running.values()}
            waiting = {text: pids for text, pids in left.items() if not pids or pids[-1] in live}
            if left != before:
                quiet_since, before = time.monotonic(), left
            self.drained = time.monotonic() - begin
            if not left or (not waiting and time.monotonic() - quiet_since > QUIET):
                await self._settle()
                return
            await trio.sleep(0.1)

    async def _settle(self) -> None:
        """Until nothing is to be sent any more, also of what nobody waits for."""
        while time.monotonic() < self.deadline:
            with suppress(BusError):
                profile = self.place.profile
                status = await trio.to_thread.run_sync(ask, profile, "x.status.get", profile.follower_secret)
                if not status["sends"]["waiting"]:
                    return
            await trio.sleep(0.2)

    # -- what is seen

    async def _collect(self) -> None:
        while True:
            await trio.sleep(1.0)
            await self._collect_once()

    async def _collect_once(self) -> None:
        """What is new or changed in the record, of which the sandbox keeps the last 20,000 entries."""
        news = await trio.to_thread.run_sync(self.sandbox.get, f"/sandbox/record?changed_after={self._version}")
        self._version = news["version"]
        self.record.update((entry["n"], entry) for entry in news["entries"])

    def diary(self) -> list[dict[str, Any]]:
        """All lines that handlers have written, of each process in order; half a line is left for the next time."""
        for path in sorted((self.place.root / "diary").glob("*.jsonl")):
            lines, at = self._diary.get(path.name, ([], 0))
            with path.open("rb") as file:
                file.seek(at)
                news = file.read()
            whole = news[: news.rfind(b"\n") + 1]
            for line in whole.splitlines():
                with suppress(ValueError):  # cut by a disk that was full
                    lines.append(json.loads(line))
            self._diary[path.name] = (lines, at + len(whole))
        return [line for lines, _ in self._diary.values() for line in lines]

    def facts(self) -> Facts:
        """Everything that was left behind, once nothing runs."""
        profile = self.place.profile
        wall = time.time() - time.monotonic()
        with closing(sqlite3.connect(profile.database)) as db:
            pressed = "kind LIKE 'callback%' AND outcome IS 'answered'"  # a button whose meaning the leader keeps
            wanted = f"SELECT update_id, owner_key, outcome FROM updates WHERE NOT ({pressed})"
            journal = db.execute(wanted).fetchall()
            moments = db.execute("SELECT update_id, admitted_ms FROM updates").fetchall()
            dead = db.execute(f"SELECT body FROM updates WHERE outcome IN {DEAD}").fetchall()
            calls = db.execute("SELECT seq, key, request_id, state, tries, told, answer FROM calls").fetchall()
            (offset,) = db.execute("SELECT poll_offset FROM term").fetchone()
        logs = [*(self.place.root / "out").glob("*.log"), *profile.leader_log.parent.glob("*")]
        return Facts(
            said=self.said,
            diary=self.diary(),
            deaths=self.rig.deaths,
            leaders=frozenset(self.rig.leaders),
            pressed=self.person.pressed,
            deleted=self.person.deleted,
            record=list(self.record.values()),
            journal=journal,
            admitted={update_id: ms / 1000 - wall for update_id, ms in moments},
            dead_letters=frozenset(
                one.get("text", one.get("caption")) for one in (json.loads(body)["message"] for (body,) in dead)
            ),
            poll_offset=offset,
            calls=[Call(*row) for row in calls],
            threads=self.threads,
            inboxes={key: dict(self._inbox(key)) for key in self.threads},
            outputs={path.name: path.read_bytes() for path in logs},
            token=self.sandbox.token,
        )

    def _inbox(self, key: str) -> Iterator[tuple[str, bool]]:
        with closing(sqlite3.connect(self.place.profile.inbox(key))) as db:
            for delivery, done in db.execute("SELECT delivery_id, done_ms IS NOT NULL FROM deliveries"):
                yield delivery, bool(done)


def main(arguments: list[str] | None = None) -> int:
    """Run, judge, and print the counts as one line of JSON."""
    options = _options(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tb-") as name, Sandbox() as sandbox:
        chance = random.Random(options.seed)
        passes = 2 if options.cover else max(4, round(options.rate * 0.3))
        rig = Rig(Place(Path(name)), chance, options.armed, passes, "freeze" in options.kill)
        run = Run(options, sandbox, rig, chance, began)
        trio.run(run.live)
        facts = run.facts()
        broken = [*_too_little(run, facts), *violations(facts)]
        if broken and options.keep:
            _keep(options.keep, facts, broken)
    for line in broken[:SHOWN]:
        print(line, file=sys.stderr)
    print(json.dumps(_summary(run, facts, len(broken))))
    return 1 if broken else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long there is traffic (30)")
    parser.add_argument("--seed", type=int, default=1, help="what decides who dies when (1)")
    parser.add_argument("--kill", default=",".join(KINDS), help=f"what happens to processes ({','.join(KINDS)})")
    parser.add_argument("--mode", choices=tuple(ASKING), default="all", help="whether handlers answer (all: some)")
    parser.add_argument("--rate", type=float, default=100.0, help="updates a second (100)")
    parser.add_argument("--kills", type=int, help="how many acts, those at crash points not counted (seconds / 3)")
    parser.add_argument("--armed", type=float, default=0.5, help="the share of processes with a crash point (0.5)")
    parser.add_argument("--cover", action="store_true", help="all processes are armed, and every point has to strike")
    about = "leaders keep spares, which no crash point strikes (in 3 of 10 runs)"
    parser.add_argument("--spare", action=argparse.BooleanOptionalAction, help=about)
    parser.add_argument("--extra", type=float, default=EXTRA, help="seconds for start and end, on a busy machine (15)")
    parser.add_argument("--keep", type=Path, help="where to put the files of a run that broke a promise")
    options = parser.parse_args(arguments)
    options.kill = options.kill.split(",")
    if unknown := set(options.kill) - set(KINDS):
        parser.error(f"--kill: {', '.join(sorted(unknown))}: there is {', '.join(KINDS)}")
    if options.cover:
        options.armed, options.spare = 1.0, False
    if options.spare is None:
        options.spare = random.Random(f"spare {options.seed}").random() < 0.3
    if options.kills is None:
        options.kills = max(1, int(options.seconds / 3))
    return options


def _too_little(run: Run, facts: Facts) -> Iterator[str]:
    """What did not happen, and what should not have."""
    wanted = round(run.options.rate * run.options.seconds)
    if texts := late(facts):
        yield f"time was over before everything was done: {len(texts)} updates, such as {texts[0]!r}"
    if (said := sum(map(len, run.said.values()))) < wanted:
        yield f"{said} updates were made, {wanted} were asked for"
    if run.events < run.options.kills:
        yield f"{run.events} acts happened, {run.options.kills} were asked for"
    for what, count in run.rig.counts.items():
        if what.startswith("ended by itself"):
            yield f"{what} ({count} times)"
    if run.options.cover and (missed := _missed(run)):
        yield f"{len(missed)} crash points have not struck: {', '.join(missed)}"
    yield from (f"a program ended: {line['why']}" for line in facts.diary if line["what"] == "fault")


def _missed(run: Run) -> list[str]:
    """The crash points of this mode that have not struck."""
    wanted = {point for points in run.points for point in points}
    return [point for point in POINTS if point in wanted and not run.rig.strikes[point]]


def _summary(run: Run, facts: Facts, broken: int) -> dict[str, Any]:
    counts = run.rig.counts
    what = [line["what"] for line in facts.diary]
    entries = facts.record
    return {
        "benchmark": "chaos",
        "seed": run.options.seed,
        "seconds": run.options.seconds,
        "mode": run.options.mode,
        "kill": run.options.kill,
        "spare": run.options.spare,
        "started_s": round(run.started, 1),
        "drained_s": round(run.drained, 1),
        "took_s": round(time.monotonic() - run.began, 1),
        "updates": sum(map(len, run.said.values())),
        "albums": run.albums,
        "album_items": album_items(facts.diary),
        "handed": what.count("handed"),
        "done": what.count("done"),
        "sends": sum(1 for entry in entries if entry["method"] == "sendMessage" and entry["ok"]),
        "repeated_sends_answered": what.count("sent")
        - len({(line["id"], line["part"]) for line in facts.diary if line["what"] == "sent"}),
        "unknown": sum(1 for call in facts.calls if call.key and call.state == "unknown"),
        "sent_again": sum(call.tries for call in facts.calls),
        "notices": sum(1 for entry in entries if entry["ok"] and notice_of(entry)),
        "newcomers": what.count("came"),
        "cleaned_up": sum(1 for entry in entries if entry["method"] == "deleteForumTopic" and entry["ok"]),
        "dead_letters": len(facts.dead_letters),
        "polls": sum(1 for entry in entries if entry["kind"] == "poll"),
        "kills": sum(count for name, count in counts.items() if name.startswith(("kill", "freeze"))),
        "disk": sum(count for name, count in counts.items() if name.startswith("disk")),
        "told": counts["told leader"],
        "handed_over": what.count("gave"),
        "questions": len(run.person.pressed),
        "given_by_a_person": len(run.said[LOST]),
        "threads_deleted": len(run.person.deleted),
        "points": {point: run.rig.strikes[point] for point in POINTS},
        "points_missed": _missed(run),
        "by": dict(sorted(counts.items())),
        "frozen_ended_s": [round(seconds, 1) for seconds in run.rig.thawed_late],
        "violations": broken,
        "load": round(os.getloadavg()[0], 1),
    }


def _keep(path: Path, facts: Facts, broken: list[str]) -> None:
    """For those who look for the reason."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "violations").write_text("\n".join(broken))
    (path / "record.json").write_text(json.dumps(sorted(facts.record, key=lambda entry: entry["n"])))
    (path / "diary.json").write_text(json.dumps(facts.diary))
    (path / "deaths.json").write_text(json.dumps(facts.deaths))
    for name, said in facts.outputs.items():
        (path / name).write_bytes(said)


if __name__ == "__main__":
    sys.exit(main())
