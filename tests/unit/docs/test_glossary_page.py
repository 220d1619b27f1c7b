"""The glossary gives each word one meaning and says where in the code it is at home."""

from __future__ import annotations

import re

import pytest

from tests.fixtures_paths import PROJECT
from tests.fixtures_source_tree import PACKAGES, classes, modules

PAGE = (PROJECT / "docs" / "glossary.md").read_text("utf-8")
ROWS = re.findall(r"^\| (?!word)([\w ,-]+) \| .* \| `(\w+)` \|$", PAGE, re.MULTILINE)
WORDS = [word for cell, _ in ROWS for word in cell.split(", ")]
ONE_MEANING = ["cursor", "scope", "stage", "lane", "audit", "judge", "publish", "finding"]
MADE_OF = [
    "slot",
    "segment",
    "bucket",
    "baseline",
    "anchor",
    "carry-over",
    "generation",
    "checkpoint",
    "cut",
    "lane",
]


def homes() -> set[str]:
    """Return the names of all modules, folders and classes."""
    paths = [path for package in PACKAGES for path in modules(package)]
    found = {part for path in paths for part in path.with_suffix("").parts}
    return found | {name for path in paths for name in classes(path)}


def test_no_word_has_two_rows() -> None:
    assert sorted(WORDS) == sorted(set(WORDS))


@pytest.mark.parametrize("word", sorted({*ONE_MEANING, *MADE_OF}))
def test_the_word_has_a_meaning(word: str) -> None:
    assert word in WORDS


def test_every_word_is_at_home_in_the_code() -> None:
    assert {home for _, home in ROWS} - homes() == set()


def test_every_row_of_the_page_was_read() -> None:
    written = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(written) == len(ROWS) + PAGE.count("| word |")
