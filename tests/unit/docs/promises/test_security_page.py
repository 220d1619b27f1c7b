"""docs/security.md names who is stopped, by what, and by which tests; each of these exists."""

from __future__ import annotations

import re

import pytest

from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "security.md").read_text("utf-8")
HEAD = "| who | what they hold | what stops them | tests |"
TABLES = [part.partition("\n\n")[0].splitlines()[2:] for part in PAGE.split(HEAD)[1:]]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for table in TABLES
    for line in table
    if line.startswith("|")
]
WRITTEN = {
    name
    for path in (PROJECT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))
}


def test_every_row_that_names_a_test_is_in_a_table_of_threats() -> None:
    naming = [line for line in PAGE.splitlines() if line.startswith("|") and "`test_" in line]
    assert len(ROWS) == len(naming) > 0
    assert all(TABLES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}, {row[1]}")
def test_a_threat_has_a_holder_a_measure_and_tests_that_exist(row: tuple[str, ...]) -> None:
    who, held, stopped_by, tests = row
    assert who
    assert held
    assert stopped_by
    named = re.findall(r"`(test_\w+)`", tests)
    assert named
    assert [name for name in named if name not in WRITTEN] == []
