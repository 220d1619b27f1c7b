"""The table of docs/compatibility.md is what the runs have stored, with a row for each release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compatibility.__main__ import summary
from tests.compatibility.page import BEGIN, END, MIXED, PAGE, Outcome, Result, stored, table
from tests.compatibility.releases import cells

TEXT = PAGE.read_text("utf-8")


def test_the_table_is_what_the_runs_have_stored() -> None:
    shown = TEXT.partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == table(cells(), stored())


def test_rows_of_different_versions_of_the_code_are_called_so() -> None:
    rows = list(cells())
    mixed = {cell.name: result_of(cell.name, str(place)) for place, cell in enumerate(rows)}
    assert MIXED in table(rows, mixed)
    assert MIXED not in table(rows, {name: result_of(name, "one") for name in mixed})
    one_ran = {name: replace(each, outcome=Outcome.NOT_RUN) for name, each in mixed.items()}
    first = next(cell.name for cell in rows if not cell.usual)
    assert MIXED not in table(rows, one_ran | {first: mixed[first]})


def result_of(cell: str, code: str) -> Result:
    return Result(cell=cell, summary="9 passed", outcome=Outcome.PASSED, day="", code=code)


def test_every_result_is_of_a_release_of_the_table() -> None:
    assert stored().keys() <= {cell.name for cell in cells() if not cell.usual}


def test_the_newest_releases_that_are_supported_have_a_row() -> None:
    rows = {cell.name for cell in cells()}
    for number in ("15", "16", "17", "18"):
        assert any(name.startswith(f"postgresql-{number}.") for name in rows)
    for number in ("4.0", "4.1", "4.2", "4.3", "4.4"):
        assert any(name.startswith(f"kafka-{number}.") for name in rows)
    for number in ("3.11", "3.12", "3.13", "3.14"):
        assert f"python-{number}" in rows


@pytest.mark.parametrize(
    "counts",
    [
        "1443 passed, 4 deselected, 51 subtests passed",
        "1 failed, 174 passed, 48 deselected",
        "9 passed",
    ],
)
def test_the_counts_of_a_run_are_those_of_its_last_line(counts: str) -> None:
    assert summary(f"..... [100%]\n{counts} in 129.08s (0:02:09)\n") == counts
    assert summary("..... [ 50%]\nKilled\n") is None
