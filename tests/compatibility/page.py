"""The table of docs/compatibility.md, written from what the runs have stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from tests.compatibility.releases import ALL_TESTS, SUITES, Cell
from tests.fixtures_paths import PROJECT

PAGE = PROJECT / "docs" / "compatibility.md"
RESULTS = PROJECT / "docs" / "evidence" / "compatibility.json"
BEGIN, END = "<!-- written by python -m tests.compatibility -->", "<!-- end -->"
HEAD = ("| product | release | result | tests |", "|---|---|---|---|")
MIXED = (
    "**Not all rows are of one version of the code.** `code` is a checksum of the sources that a"
    " row ran on. Changes\nafter it were not run on that release. Before a release of the outbox,"
    " all rows run on one version."
)


class Outcome(StrEnum):
    """What became of a cell."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run of one cell has shown: pytest's last line without the time, or why none ran."""

    cell: str
    summary: str
    outcome: Outcome
    day: str
    code: str


def stored() -> dict[str, Result]:
    """Return the results of all runs so far, by cell."""
    if not RESULTS.exists():
        return {}
    rows = json.loads(RESULTS.read_text("utf-8"))
    return {row["cell"]: Result(**{**row, "outcome": Outcome(row["outcome"])}) for row in rows}


def store(results: Mapping[str, Result]) -> None:
    """Keep the results."""
    rows = [asdict(results[name]) for name in sorted(results)]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def write(cells: Iterable[Cell], results: Mapping[str, Result]) -> None:
    """Replace the table of the page."""
    text = PAGE.read_text("utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(cells, results)}\n\n{END}{after}", "utf-8")


def table(cells: Iterable[Cell], results: Mapping[str, Result]) -> str:
    """Return the table of these cells, with a note if not all ran on one version of the code."""
    shown = list(cells)
    ran = [found for cell in shown if (found := results.get(cell.name)) and _has_run(found)]
    notes = ["", MIXED] if len({each.code for each in ran}) > 1 else []
    return "\n".join([*HEAD, *(_line(cell, results.get(cell.name)) for cell in shown), *notes])


def _has_run(result: Result) -> bool:
    return result.outcome is not Outcome.NOT_RUN


def _line(cell: Cell, result: Result | None) -> str:
    start = f"| {cell.product} | {cell.release} |"
    if cell.usual:
        return f"{start} what the project runs on | {ALL_TESTS} |"
    if result is None or not _has_run(result):
        return f"{start} **not run**{f': {result.summary}' if result else ''} | – |"
    suites = ", ".join(f"`{each}`" for each in SUITES[cell.product])
    shown = result.summary if result.outcome is Outcome.PASSED else f"**{result.summary}**"
    return f"{start} {shown} ({result.day}, code `{result.code}`) | {suites} |"
