"""docs/semantics.md names a test for every rule and every defect, and each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.places import PROJECT

ROW = re.compile(r"^\| ([PD]\d+) \|.* `(test_\w+)` \|$", re.MULTILINE)
NAMED = dict(ROW.findall((PROJECT / "docs" / "semantics.md").read_text()))
RULES = [*(f"P{number}" for number in range(1, 55)), *(f"D{number}" for number in range(1, 33))]
WRITTEN = {
    name
    for path in Path(PROJECT, "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)\(", path.read_text())
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_has_a_test_that_exists(rule: str) -> None:
    assert NAMED[rule] in WRITTEN
