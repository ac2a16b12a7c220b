"""Ten agents that all talk at once, in a forum and in one private chat, against flood control as Telegram's.

    python -m benchmarks.sending [--quick] [--scale K] --json     every window divided by K (60)
    python -m benchmarks.sending --scale 1 --minutes 10 --json    as it is in life

People press buttons meanwhile, a little more often than what is kept for the answers: each press is answered at once
(`answerCallbackQuery`) and with a message. The last line is JSON; the exit status is 1 when a limit was broken or a
target missed. `throughput_ratio` is the time that the limits make what was sent take, by the time that it took.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from benchmarks._bus import Place, leading, one_line
from benchmarks._tools import percentile
from telegram_bus.core.meters import DEFAULT_LIMITS, Limits, Rate, kept_for_clicks
from telegram_bus.testing import Sandbox

RESULTS: Final = Path(__file__).parent / "results" / "sending.jsonl"
TALKERS: Final = 10
FULL, QUICK = 100, 25  # messages of each
TARGETS: Final = {"jain": 0.95, "throughput_ratio": 0.95}
CLICK_SECONDS: Final = 1.5
SPENDING: Final = ("sendmessage", "editmessage", "createforumtopic")


def scaled(limits: Limits, scale: float) -> Limits:
    """The limits with every window divided."""
    rates: dict[str, Any] = {
        name: Rate(rate.most, rate.seconds / scale) for name, rate in limits._asdict().items() if name != "burst"
    }
    return limits._replace(**rates)


@define
class Scene:
    """One chat in which all talk."""

    name: str
    scale: float
    messages: int
    clicks: list[float] = field(factory=list)
    refusals: int = 0
    _over: threading.Event = field(factory=threading.Event)

    def run(self) -> dict[str, Any]:
        """Let them talk, and judge what the sandbox saw."""
        limits = scaled(DEFAULT_LIMITS, self.scale)
        with tempfile.TemporaryDirectory(prefix="tb-") as root, Sandbox() as sandbox:
            sandbox.flood_control(True, scale=self.scale)
            chat = sandbox.forum_id if self.name == "forum" else sandbox.chat_id
            options = ["--limits", str(limits), "--allow", str(sandbox.chat_id), "--no-spare"]
            place = Place(Path(root))
            with leading(place, sandbox.api_root, sandbox.token, chat, *options):
                began = self._talk(place, sandbox, limits)
            return self._judge(sandbox, limits, began)

    def _talk(self, place: Place, sandbox: Sandbox, limits: Limits) -> float:
        keys = [f"talker-{number}" for number in range(TALKERS)]
        command = [sys.executable, "-m", "benchmarks._talkers", str(self.messages), *keys]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=place.environ, stdin=pipe, stdout=pipe, text=True) as talkers:
            try:
                buttons = [one_line(talkers)["message"] for _ in keys]
                assert one_line(talkers)["ready"]
                time.sleep(1.1 * max(limits.group.seconds, limits.private.seconds * limits.burst))
                began = time.monotonic()
                assert talkers.stdin is not None
                talkers.stdin.write("go\n")
                talkers.stdin.flush()
                presser = threading.Thread(target=self._press, args=(sandbox, buttons, limits))
                presser.start()
                left = len(keys)
                while left:
                    said = one_line(talkers)
                    left -= "done" in said
                    self.refusals += "refused" in said
                self._over.set()
                presser.join()
                return began
            finally:
                self._over.set()
                talkers.kill()

    def _press(self, sandbox: Sandbox, buttons: list[dict[str, Any]], limits: Limits) -> None:
        """Press a button now and then: half as often again as there are places kept for the answers."""
        rate, most = (limits.group, limits.group.most) if self.name == "forum" else (limits.private, 10)
        pause = most * rate.seconds / rate.most / kept_for_clicks(most) / 1.5
        chance = random.Random(1)
        while not self._over.wait(chance.uniform(0.5, 1.5) * pause):
            at = time.monotonic()
            query = sandbox.press(chance.choice(buttons), "press")
            threading.Thread(target=self._note_answer, args=(sandbox, query, at), daemon=True).start()

    def _note_answer(self, sandbox: Sandbox, query: str, at: float) -> None:
        wanted = {"method": "answerCallbackQuery", "param.callback_query_id": query}
        found = sandbox.wait_for_record(1, within=60, **wanted)
        self.clicks.append(float(found[0]["began"]) - at)

    def _judge(self, sandbox: Sandbox, limits: Limits, began: float) -> dict[str, Any]:
        record = [call for call in sandbox.record(kind="call") if float(call["began"]) >= began]
        calls = [call for call in record if call["method"].lower().startswith(SPENDING)]
        talk = [(float(call["began"]), *call["params"]["text"].split(":")) for call in calls if _is_talk(call)]
        first_done = min(max(at for at, key, _ in talk if key == one) for one in {key for _, key, _ in talk})
        shares = Counter(key for at, key, _ in talk if at <= first_done).values()
        last_talk = max(at for at, _, _ in talk)
        sent = [float(call["began"]) for call in calls if float(call["began"]) <= last_talk]
        took = last_talk - min(sent)
        if self.name == "forum":
            best = (len(sent) - 1) // limits.group.most * limits.group.seconds
        else:
            best = (len(sent) - limits.burst) * limits.private.seconds / limits.private.most
        flood = sandbox.flood()
        return {
            "jain": round(sum(shares) ** 2 / (len(shares) * sum(one * one for one in shares)), 4),
            "violations": flood["violations"],
            "refusals": self.refusals + sum(call["code"] == 429 for call in calls),
            "throughput_ratio": round(best / took, 4),
            "click_p99_s": round(percentile(self.clicks, 99), 3) if self.clicks else None,
            "clicks": len(self.clicks),
            "messages": len(talk),
            "sent": len(sent),
            "seconds": round(took, 2),
            "in_order": all(
                numbers == sorted(numbers)
                for one in {key for _, key, _ in talk}
                if (numbers := [int(number) for _, key, number in talk if key == one])
            ),
            "complete": len(talk) == TALKERS * self.messages,
        }


def _is_talk(call: dict[str, Any]) -> bool:
    text = call["params"].get("text", "")
    return bool(call["ok"]) and text.startswith("talker-") and ": " not in text


def main(arguments: list[str] | None = None) -> int:
    """Run both scenes and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sending", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} messages each instead of {FULL}")
    parser.add_argument("--scale", type=float, default=60.0, help="what every window is divided by (60)")
    parser.add_argument(
        "--minutes", type=float, help="about how long, both scenes at once, instead of so many messages"
    )
    parser.add_argument("--json", action="store_true", help="only JSON")
    options = parser.parse_args(arguments)
    begin = time.monotonic()
    counts = _counts(options)
    scenes = [Scene(name, options.scale, count) for name, count in counts.items()]
    with ThreadPoolExecutor(len(scenes) if options.minutes else 1) as pool:
        results = dict(zip(counts, pool.map(Scene.run, scenes), strict=True))
    summary = _summary(options, results, time.monotonic() - begin)
    if not options.json:
        print(json.dumps(results, indent=1), file=sys.stderr)
    with RESULTS.open("a") as file:
        file.write(json.dumps(summary) + "\n")
    print(json.dumps(summary))
    return 0 if summary["met"] else 1


def _counts(options: argparse.Namespace) -> dict[str, int]:
    if options.minutes is None:
        return dict.fromkeys(("forum", "private"), QUICK if options.quick else FULL)
    limits, seconds = scaled(DEFAULT_LIMITS, options.scale), options.minutes * 60
    rates = {"forum": limits.group, "private": limits.private}
    return {name: max(2, round(seconds * rate.most / rate.seconds * 0.9 / TALKERS)) for name, rate in rates.items()}


def _summary(options: argparse.Namespace, results: dict[str, dict[str, Any]], took: float) -> dict[str, Any]:
    def worst(name: str, of: Any) -> Any:
        values = [result[name] for result in results.values() if result[name] is not None]
        return of(values) if values else None

    summary: dict[str, Any] = {
        "benchmark": "sending",
        "jain": worst("jain", min),
        "violations": worst("violations", sum),
        "refusals": worst("refusals", sum),
        "throughput_ratio": worst("throughput_ratio", min),
        "click_p99_s": worst("click_p99_s", max),
        "in_order": worst("in_order", min),
        "complete": worst("complete", min),
    }
    summary["met"] = (
        all(summary[name] >= target for name, target in TARGETS.items())
        and not summary["violations"]
        and not summary["refusals"]
        and (summary["click_p99_s"] or 0.0) <= CLICK_SECONDS
        and summary["in_order"]
        and summary["complete"]
    )
    return summary | {
        "scale": options.scale,
        "scenes": results,
        "took_s": round(took, 1),
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    sys.exit(main())
