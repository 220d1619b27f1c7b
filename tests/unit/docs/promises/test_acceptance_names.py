"""Each acceptance scenario has a test with its number in the name."""

from __future__ import annotations

import re

import pytest

from tests.fixtures_paths import PROJECT

SCENARIOS = range(1, 41)


@pytest.fixture(scope="module")
def named() -> set[int]:
    tests = (path.read_text("utf-8") for path in (PROJECT / "tests").rglob("test_*.py"))
    return {int(number) for text in tests for number in re.findall(r"def test_a(\d+)_", text)}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_scenario_has_a_test_of_its_name(scenario: int, named: set[int]) -> None:
    assert scenario in named
