"""A run that passed becomes a page, a JSON and a row of the table; other rows stay."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.judge.verdict import Verdict
from chaos.run.evidence import BEGIN, END, record
from chaos.run.totals import total_of
from cli.invocation.exit_codes import CommandFailed

FOUND = Verdict(
    verdict="PASS",
    profile="kill",
    seed=5,
    length=150.0,
    kills={"api:kill": 10},
    faults={"postgres_stop": 2},
    messages=500,
    invariants={"I3": {"checked": 9, "violations": 0}},
    load=[4.0, 12.6],
    versions={"kafka": "4.2.1"},
    code_version="0123456789abcdef",
    spark={"verdict": "findings", "classes": {"PG_REGRESSION": 3}},
)
ROW = (
    "| kill | 10 kills, 12 faults in all (postgres_stop 2), 500 messages; 1 × 150 s, load 4 to 13"
    " | PASS: 0 violations in 9 comparisons; Spark: findings in 1"
    " (PG_REGRESSION 3, as it must be after a lost tail)"
    " | 4.2.1 | `0123456789abcdef` | [kill.md](kill.md) |"
)


def index_in(folder: Path) -> Path:
    """Return a list of pages with an old table."""
    index = folder / "README.md"
    index.write_text(f"before\n{BEGIN}\n| old |\n{END}\nafter\n")
    return index


def test_a_row_shows_what_was_done_and_found_on_which_kafka_and_code(tmp_path: Path) -> None:
    index = index_in(tmp_path)
    record(total_of([FOUND]), tmp_path)
    lines = index.read_text().splitlines()
    assert ROW in lines
    assert "| old |" not in lines
    assert (lines[0], lines[-1]) == ("before", "after")
    assert json.loads((tmp_path / "kill.json").read_text())["messages"] == 500
    assert (tmp_path / "kill.md").read_text().startswith("# kill: PASS")


def test_a_later_profile_keeps_the_rows_of_the_others(tmp_path: Path) -> None:
    index = index_in(tmp_path)
    record(total_of([FOUND]), tmp_path)
    record(total_of([replace(FOUND, profile="alone", spark=None, load=())]), tmp_path)
    rows = [line for line in index.read_text().splitlines() if line.endswith(".md) |")]
    assert rows[0] == ROW
    assert rows[1].startswith("| alone | 10 kills, 12 faults in all (postgres_stop 2), 500")


def test_a_list_of_pages_without_a_place_for_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("nothing\n")
    with pytest.raises(CommandFailed, match="no place"):
        record(total_of([FOUND]), tmp_path)
