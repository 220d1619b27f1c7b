"""The tables and pictures about performance are those of the kept measurements, not of a hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.comparison.command import DATA, IMAGES, PAGE
from benchmarks.comparison.page import written
from benchmarks.comparison.plot import plots
from tests.fixtures_paths import PROJECT


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PROJECT / DATA).read_text("utf-8"))
    return found


def test_the_page_has_the_measured_tables(document: dict[str, Any]) -> None:
    page = (PROJECT / PAGE).read_text("utf-8")
    assert written(page, document) == page


def test_the_pictures_are_those_of_the_measurements(document: dict[str, Any]) -> None:
    for name, picture in plots(document).items():
        assert (PROJECT / IMAGES / name).read_text("utf-8") == picture


def test_no_measurement_is_without_its_machine(document: dict[str, Any]) -> None:
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["fsync_ms"] > 0
