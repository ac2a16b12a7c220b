"""A stored run as the tables of docs/performance.md: `python -m benchmarks.report benchmarks/results/….json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["tables"]


def tables(record: dict[str, Any]) -> list[str]:
    """The lines of one Markdown table for each benchmark."""
    lines = []
    for name, figures in record["figures"].items():
        lines += [
            f"### {name}",
            "",
            "| | measured | target | reference | to raw | |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_row(figure) for figure in figures]
        lines.append("")
    return lines


def _row(figure: dict[str, Any]) -> str:
    sign = "≤" if figure["better"] == "less" else "≥"
    target = "" if figure["target"] is None else f"{sign} {_number(figure['target'])}"
    ratio = "" if figure["ratio"] is None else f"{figure['ratio']:.2f}"
    verdict = {None: "", True: "met", False: f"**{_missed(figure)}**"}[figure["met"]]
    cells = (
        figure["name"],
        f"{_number(figure['value'])} {figure['unit']}",
        target,
        figure["reference"],
        ratio,
        verdict,
    )
    return "| " + " | ".join(cell.strip() for cell in cells) + " |"


def _missed(figure: dict[str, Any]) -> str:
    """By how much."""
    value, target = figure["value"], figure["target"]
    if not value or not target:
        return "missed"
    factor = value / target if figure["better"] == "less" else target / value
    return f"missed by a factor of {factor:.2f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    print("\n".join(tables(json.loads(Path(sys.argv[1]).read_text()))))
