"""Seeds faults into the final state of a finished run: the judge must find exactly these.

For Spark, a separate test suite does the same on real PostgreSQL and Kafka.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from chaos.controls.result import ControlResult
from chaos.judge import judge
from chaos.judge.final_state import rows
from chaos.judge.verdict import PASS, VIOLATION

Rows = list[dict[str, Any]]


def lose(records: Rows) -> Rows:
    """Remove a record."""
    return records[:-1]


def invent(records: Rows) -> Rows:
    """Add a record of a message that was never prepared."""
    phantom = {**records[-1], "id": "00000000-0001-8000-8000-000000000001", "batch": "0.999999.0"}
    return [*records, {**phantom, "offset": records[-1]["offset"] + 1}]


def double(records: Rows) -> Rows:
    """Add a record a second time, at another offset."""
    return [*records, {**records[-1], "offset": records[-1]["offset"] + 1}]


def alter(records: Rows) -> Rows:
    """Change a record's value."""
    return [*records[:-1], {**records[-1], "sha": "0" * 64}]


def invert(records: Rows) -> Rows:
    """Exchange the places of two records of one key."""
    first, second = _neighbours(records)
    places = ("partition", "offset")
    moved = [
        {**records[one], **{name: records[other][name] for name in places}}
        for one, other in ((first, second), (second, first))
    ]
    swapped = dict(zip((first, second), moved, strict=True))
    return [swapped.get(number, record) for number, record in enumerate(records)]


SEEDED_FAULTS: Final[dict[str, tuple[Callable[[Rows], Rows], frozenset[str]]]] = {
    "a loss": (lose, frozenset({"I3", "I8", "poll"})),
    "a phantom": (invent, frozenset({"I2", "I8", "poll"})),
    "a duplicate": (double, frozenset({"I1", "I8", "I6", "poll"})),
    "an alteration": (alter, frozenset({"I7"})),
    "an inversion": (invert, frozenset({"I6", "poll"})),
}
"""The seeded faults and the invariants that may report them; ``MUST`` has the required one."""
MUST: Final = {
    "a loss": "I3",
    "a phantom": "I2",
    "a duplicate": "I1",
    "an alteration": "I7",
    "an inversion": "I6",
}


def seed_and_judge(run: Path, scratch: Path) -> list[ControlResult]:
    """Seed each fault into a copy of a run that passes; return whether it was found."""
    sound = judge(run)
    if sound.verdict != PASS:
        return [ControlResult(name="seeded faults", caught=False, how=f"a {sound.verdict} run")]
    return [_seeded(run, scratch / name.replace(" ", "-"), name) for name in SEEDED_FAULTS]


def _seeded(run: Path, copy: Path, name: str) -> ControlResult:
    change, may = SEEDED_FAULTS[name]
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("postgres", "kafka"))
    path = copy / "leftovers" / "records.jsonl"
    found = change(list(rows(path)))
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    verdict = judge(copy)
    reported = {each for each, it in verdict.invariants.items() if it["violations"]}
    caught = verdict.verdict == VIOLATION and MUST[name] in reported and reported <= may
    return ControlResult(name=f"{name}, seeded", caught=caught, how=", ".join(sorted(reported)))


def _neighbours(records: Rows) -> tuple[int, int]:
    """Return the last two records of one key."""
    last: dict[tuple[str, str], int] = {}
    pair = None
    for number, record in sorted(enumerate(records), key=lambda each: each[1]["offset"]):
        scope = (record["topic"], record["key"])
        if record["key"] is not None and scope in last:
            pair = (last[scope], number)
        last[scope] = number
    if pair is None:
        raise ValueError("no key has two records")
    return pair
