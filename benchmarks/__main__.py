"""Runs the benchmarks, prints a table, and writes the figures as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import attrs

from benchmarks import deliveries, flood, follower, latency, members, registration, roundtrip, routing
from benchmarks._echo import measure_echo
from benchmarks._tools import BENCHMARKS, Measured, Run

MODULES = (
    roundtrip,
    flood,
    routing,
    deliveries,
    latency,
    registration,
    members,
    follower,
)  # importing one registers its benchmarks
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run what was asked for; 0, also where a target was missed: the table says so."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(BENCHMARKS), help="these benchmarks (default: all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--json", type=Path, help="where the figures go (default: a new file in benchmarks/results)")
    options = parser.parse_args()
    figures: dict[str, list[Measured]] = {}
    load = os.getloadavg()[0]
    try:
        with tempfile.TemporaryDirectory(prefix="tb-") as name:
            run = _measure_raw(Path(name), figures, quick=options.quick)
            for chosen in options.only or BENCHMARKS:
                _print_heading(chosen, BENCHMARKS[chosen].about)
                figures[chosen] = []
                for one in BENCHMARKS[chosen].measure(run):
                    figures[chosen].append(one)
                    _print(one)
    finally:  # one that fails does not take the figures of the others with it
        _write(options.json, figures, quick=options.quick, load=load)
    return 0


def _measure_raw(directory: Path, figures: dict[str, list[Measured]], *, quick: bool) -> Run:
    """The baseline of the run: an echo without any bus."""
    echo, echo_p99 = measure_echo(directory, 2_000 if quick else 20_000)
    figures["raw"] = [
        Measured(name="SocketStream echo, one at a time, one core, p50", value=echo * 1e6, unit="µs", ratio=1),
        Measured(name="SocketStream echo, p99", value=echo_p99 * 1e6, unit="µs", ratio=echo_p99 / echo),
    ]
    _print_heading("raw", "both ends Trio, 200 bytes, no bus")
    for one in figures["raw"]:
        _print(one)
    return Run(directory=directory, quick=quick, echo=echo)


def _print_heading(name: str, about: str) -> None:
    print(f"\n{name}: {about}")
    print(f"  {'':58} {'measured':>14} {'target':>14} {'reference':>18} {'to raw':>7}")


def _print(one: Measured) -> None:
    sign = "≤" if one.better == "less" else "≥"
    target = "" if one.target is None else f"{sign} {_number(one.target)}"
    verdict = {None: "", True: "met", False: "MISSED"}[one.met]
    ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
    measured = f"{_number(one.value)} {one.unit}"
    print(f"  {one.name:58} {measured:>14} {target:>14} {one.reference:>18} {ratio:>7} {verdict}", flush=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _write(path: Path | None, figures: dict[str, list[Measured]], *, quick: bool, load: float) -> None:
    at = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    if path is None:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{at}.json"
    record = {
        "at": at,
        "quick": quick,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": [load, os.getloadavg()[0]],  # of the last minute, before and after: what else was at work
        "figures": {
            name: [{**attrs.asdict(one), "met": one.met} for one in measured] for name, measured in figures.items()
        },
    }
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    sys.exit(main())
