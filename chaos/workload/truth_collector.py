"""Copies the truth of every transaction into the history, after the last decision."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

from chaos.history.writer import HistoryWriter
from chaos.workload.truth import Truth

A_LINE: Final = 1000


def collect_truth(run: Path) -> int:
    """Write ``history/truth.jsonl``; return the number of decided transactions."""
    history, count = HistoryWriter(run, "truth"), 0
    for path in sorted((run / "truth").glob("*.sqlite")):
        truth = Truth(path)
        decided = truth.all()
        while some := list(islice(decided, A_LINE)):
            items = [{"tx": tx, "decided": decision} for tx, decision in some]
            history.write("local", "ok", items=items)
            count += len(items)
        truth.close()
    history.close()
    return count
