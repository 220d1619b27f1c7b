"""docs/semantics.md names a test for every rule, event and defect, and each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "semantics.md").read_text()
ROW = re.compile(r"^\| ([PD]\d+) \|.* `(test_\w+)` \|$", re.MULTILINE)
NAMED = dict(ROW.findall(PAGE))
SECTION = PAGE.partition("## Every event in every state")[2].partition("\n## ")[0]
EVENTS = [line for line in SECTION.splitlines() if "`test_" in line]
RULES = [*(f"P{number}" for number in range(1, 55)), *(f"D{number}" for number in range(1, 33))]
WRITTEN = {
    name
    for path in Path(PROJECT, "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)\(", path.read_text())
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_has_a_test_that_exists(rule: str) -> None:
    assert NAMED[rule] in WRITTEN


@pytest.mark.parametrize("row", EVENTS, ids=[row.split("|")[1].strip() for row in EVENTS])
def test_the_event_has_a_test_that_exists(row: str) -> None:
    (name,) = re.findall(r"`(test_\w+)` \|$", row)
    assert name in WRITTEN
