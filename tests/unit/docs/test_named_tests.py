"""Each test that a page names as the proof of a promise exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures_paths import PROJECT
from tests.unit.docs.fixtures_pages import EDITED, name

NAMED: Final = re.compile(r"`(test_\w+)`")
WRITTEN: Final = {
    found
    for path in (PROJECT / "tests").rglob("test_*.py")
    for found in re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))
}
NAMING: Final = [page for page in EDITED if NAMED.search(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", NAMING, ids=name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    assert sorted(set(NAMED.findall(page.read_text("utf-8"))) - WRITTEN) == []
