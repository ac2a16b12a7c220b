"""What benchmarks share: the list of them, results with their targets, child processes, percentiles."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from attrs import frozen

__all__ = ["BENCHMARKS", "Benchmark", "Measured", "Run", "benchmark", "child", "percentile", "pinned"]


@frozen(kw_only=True)
class Measured:
    """One figure. `target` is met by values that are at least, or at most, as `better` says.

    `reference` is the figure of pi-telegram 0.28.0 as recorded in docs/performance.md, for people.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    better: Literal["less", "more"] = "less"
    reference: str = ""
    ratio: float | None = None  # to the raw baseline of this run

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "less" else self.value >= self.target


@frozen(kw_only=True)
class Run:
    """One run: `echo` is the p50 of a raw Trio SocketStream echo in it (seconds, both ends on one core)."""

    directory: Path
    quick: bool
    echo: float


@frozen
class Benchmark:
    """A named group of figures."""

    name: str
    about: str
    measure: Callable[[Run], Iterator[Measured]]


BENCHMARKS: Final[dict[str, Benchmark]] = {}


def benchmark(
    name: str, about: str
) -> Callable[[Callable[[Run], Iterator[Measured]]], Callable[[Run], Iterator[Measured]]]:
    """Register a generator of figures; import its module in `benchmarks.__main__`."""

    def register(measure: Callable[[Run], Iterator[Measured]]) -> Callable[[Run], Iterator[Measured]]:
        BENCHMARKS[name] = Benchmark(name, about, measure)
        return measure

    return register


@contextmanager
def child(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `module` and has said that it is ready; it is ended with the block."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if said != "ready\n":
                raise RuntimeError(f"{' '.join(command)} did not start: {said!r}")
            yield process
        finally:
            process.kill()


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Keep this process on one core, where the system can do that; None: wherever it likes."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def percentile(values: list[float], percent: float) -> float:
    """The value that `percent` of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
