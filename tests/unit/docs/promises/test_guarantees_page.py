"""docs/guarantees.md names tests for every guarantee, and each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "guarantees.md").read_text()
PARTS = dict(re.findall(r"^## (G\d+)\. (.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL))
NAMED = re.findall(r"`(test_\w+)`", PAGE)
WRITTEN = {
    name
    for path in Path(PROJECT, "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)\(", path.read_text())
}


@pytest.mark.parametrize("guarantee", [f"G{number}" for number in range(1, 11)])
def test_the_guarantee_says_how_it_is_kept_where_it_ends_and_what_would_fail(
    guarantee: str,
) -> None:
    part = PARTS[guarantee]
    assert "**Kept by**" in part
    assert "**Not promised:**" in part
    assert re.findall(r"`(test_\w+)`", part)


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_the_named_test_exists(name: str) -> None:
    assert name in WRITTEN
