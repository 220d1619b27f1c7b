"""Lines of a file for spreadsheets."""

from __future__ import annotations

import pytest

from outbox.operators.csv_line import csv_line


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert csv_line([text, "b"]).strip('"').startswith("'" + text[0])
