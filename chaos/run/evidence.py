"""Writes the page, the JSON and the table row of a profile whose runs all passed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from chaos.profiles.catalogue import PROFILES
from chaos.run.tables import replace_table
from chaos.run.totals import Totals

INDEX: Final = "README.md"
BEGIN, END = "<!-- written by outbox-chaos evidence -->", "<!-- end of evidence -->"
SHOWN: Final = 8
"""Kinds of faults that a row names, the most frequent first."""
UNNAMED: Final = frozenset({"kill", "kill_young", "failpoint", "ended with 0"})
"""Counted as kills; and ends of programs that older runs counted."""
HEAD: Final = (
    "| profile | what was done | found | Kafka | code | page |",
    "|---|---|---|---|---|---|",
)


def record(totals: Totals, pages: Path) -> None:
    """Write ``<profile>.md`` and ``.json``, and the table of all profiles in the list of pages.

    Raises CommandFailed if that list has no place for the table.
    """
    (pages / f"{totals.profile}.md").write_text(totals.text() + "\n")
    (pages / f"{totals.profile}.json").write_text(totals.json())
    replace_table(pages / INDEX, BEGIN, END, [*HEAD, *_rows(pages)])


def _rows(pages: Path) -> Iterator[str]:
    """Yield the row of each profile that has its JSON."""
    for profile in PROFILES:
        path = pages / f"{profile}.json"
        if path.exists():
            yield _row(json.loads(path.read_text()))


def _row(found: Mapping[str, Any]) -> str:
    name = found["profile"]
    cells = (
        name,
        _done(found),
        _found(found),
        found["versions"]["kafka"],
        f"`{found['code_version']}`",
        f"[{name}.md]({name}.md)",
    )
    return f"| {' | '.join(cells)} |"


def _done(found: Mapping[str, Any]) -> str:
    slices, load = len(found["seeds"]), found.get("load")
    length = found.get("length", found["seconds"] / slices)
    busy = f", load {min(load):.0f} to {max(load):.0f}" if load else ""
    others = [each for each in found["faults"].items() if each[0] not in UNNAMED]
    named = ", ".join(f"{kind} {count}" for kind, count in others[:SHOWN])
    more = ", and others" if len(others) > SHOWN else ""
    return (
        f"{found['killed']} kills, {found['faulted']} faults in all ({named or 'no others'}{more}),"
        f" {found['messages']} messages; {slices} × {length:.0f} s{busy}"
    )


def _found(found: Mapping[str, Any]) -> str:
    checked, violations = (
        sum(each[count] for each in found["invariants"].values())
        for count in ("checked", "violations")
    )
    spark = ", ".join(f"{word} in {count}" for word, count in found["spark"].items())
    orphans = ", ".join(f"{name} {count}" for name, count in found.get("spark_found", {}).items())
    audits = f"; Spark: {spark}" if spark else ""
    lost = f" ({orphans}, as it must be after a lost tail)" if orphans else ""
    return f"{found['verdict']}: {violations} violations in {checked} comparisons{audits}{lost}"
