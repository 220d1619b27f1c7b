"""Sums up the measurements of all rounds: medians, ratios, the document that is kept."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from benchmarks.comparison.plan import Row

OURS: Final = "this tree"
RELEASE: Final = "last release"
DIGITS: Final = 4

Medians = dict[str, dict[str, Row]]
"""By subject and path."""


def medians(rows: Iterable[Row]) -> Medians:
    """Return the median of each figure over the rounds."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["subject"], row["path"]].append(row)
    summed: Medians = defaultdict(dict)
    for (subject, path), repeated in found.items():
        summed[subject][path] = {**_median(repeated), "rounds": len(repeated)}
    return dict(summed)


def cost_ratio(rows: Sequence[Row], path: str, of: str, to: str) -> float | None:
    """Return the median over the rounds of the ratio of two subjects' CPU time; None without."""
    costs: dict[tuple[str, int], float] = {
        (row["subject"], row["round"]): sum(row["cpu_us"].values())
        for row in rows
        if row["path"] == path
    }
    pairs = [
        cost / costs[to, number]
        for (subject, number), cost in costs.items()
        if subject == of and costs.get((to, number))
    ]
    return statistics.median(pairs) if pairs else None


def rounded(value: Any) -> Any:
    """Return the same with four significant digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _median(rows: Sequence[Row]) -> Row:
    """Return the medians of equal figures, also of nested ones."""
    figures: Row = {}
    for name, first in rows[0].items():
        if name in ("path", "subject", "round"):
            continue
        same = [row[name] for row in rows]
        figures[name] = _median(same) if isinstance(first, dict) else statistics.median(same)
    return figures
