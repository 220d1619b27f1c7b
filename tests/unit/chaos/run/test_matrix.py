"""The matrix keeps a JSON per release and one table on its page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.judge.verdict import Verdict
from chaos.run.matrix import BEGIN, END, MatrixRun, record, table_of
from cli.invocation.exit_codes import CommandFailed


def run(release: str, verdict: str = "PASS", violations: int = 0) -> MatrixRun:
    """Return a release with ten kills and one recovery."""
    found = Verdict(
        verdict=verdict,
        profile="kill",
        kills={"api:kill": 10},
        messages=500,
        invariants={"I3": {"checked": 9, "violations": violations}},
        recoveries={"kill": [1.0, 3.0]},
        load=[4.0, 12.6],
        code_version="0123456789abcdef",
    )
    return MatrixRun(release=release, verdict=found)


def test_a_row_shows_verdict_counts_and_what_was_violated() -> None:
    rows = table_of([run("4.3.1", "VIOLATION", 2), run("4.2.2")])[2:]
    assert [row.split("|")[1:7] for row in rows] == [
        [" 4.2.2 ", " PASS ", " 10 ", " 10 ", " 500 ", " none "],
        [" 4.3.1 ", " VIOLATION ", " 10 ", " 10 ", " 500 ", " I3 "],
    ]


def test_a_row_shows_load_and_code_and_a_run_that_noted_no_load_a_dash() -> None:
    noted, not_noted = run("4.2.2"), run("4.3.1")
    not_noted = replace(not_noted, verdict=replace(not_noted.verdict, load=()))
    rows = table_of([noted, not_noted])[2:]
    assert [row.split("|")[-3:-1] for row in rows] == [
        [" 4 to 13 ", " `0123456789abcdef` "],
        [" - ", " `0123456789abcdef` "],
    ]


def test_a_later_run_of_one_release_keeps_the_rows_of_the_others(tmp_path: Path) -> None:
    page = tmp_path / "chaos.md"
    begin, end = (each.format(profile="kill") for each in (BEGIN, END))
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    record([run("4.2.2"), run("4.3.1")], "kill", tmp_path, page)
    record([run("4.3.1", "VIOLATION", 1)], "kill", tmp_path, page)
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "old" not in lines
    assert [line[:20] for line in lines if line.startswith("| 4.")] == [
        "| 4.2.2 | PASS | 10 ",
        "| 4.3.1 | VIOLATION ",
    ]
    stored = json.loads((tmp_path / "matrix-kill-4.2.2.json").read_text())
    assert (stored["verdict"], stored["killed"]) == ("PASS", 10)


def test_a_page_without_a_place_for_the_table_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "chaos.md"
    page.write_text("nothing\n")
    with pytest.raises(CommandFailed, match="no place"):
        record([run("4.2.2")], "kill", tmp_path, page)
