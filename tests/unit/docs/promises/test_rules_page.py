"""Every rule that code, tests or pages cite by letter and number is explained on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT
from tests.fixtures_source_tree import PACKAGES

DOCS = PROJECT / "docs"
RULES = (DOCS / "rules.md").read_text("utf-8")
PAGES = dict(re.findall(r"^\| ([A-Z]) \| .* \| \[[^]]*\]\(([\w.]*)#?[\w-]*\) \|$", RULES, re.M))
"""The page of each letter; an empty name is the rules page itself."""
DEFINED = re.compile(r"^(?:\| |## )([A-Z]\d+)\b", re.MULTILINE)
CITED = re.compile(rf"\b([{''.join(PAGES)}][1-9]\d?)\b")
IN_TEST_NAME = re.compile(r"\bdef test_([a-z][1-9]\d?)_")
NO_RULES = {"P99"}
"""A percentile."""
ROOTS = [*PACKAGES, "benchmarks", "docs", "examples", "tests"]
CITING = {".py", ".sql", ".md"}


@pytest.fixture(scope="module")
def explained() -> set[str]:
    pages = {page: (DOCS / (page or "rules.md")).read_text("utf-8") for page in PAGES.values()}
    return {
        rule
        for letter, page in PAGES.items()
        for rule in DEFINED.findall(pages[page])
        if rule.startswith(letter)
    }


def citing() -> Iterator[Path]:
    """Yield the files that may cite a rule."""
    yield from PROJECT.glob("*.md")
    for root in ROOTS:
        yield from (path for path in (PROJECT / root).rglob("*") if path.suffix in CITING)


def citations(path: Path) -> set[str]:
    """Return the rules that a file cites, by their ids or in names of tests."""
    text = path.read_text("utf-8")
    named = (found.upper() for found in IN_TEST_NAME.findall(text))
    return {*CITED.findall(text), *(rule for rule in named if rule[0] in PAGES)} - NO_RULES


def test_every_letter_has_a_page_with_rules(explained: set[str]) -> None:
    assert set(PAGES) == {"G", "P", "D", "F", "I", "O", "A"}
    assert {rule[0] for rule in explained} == set(PAGES)


@pytest.mark.parametrize(
    ("letter", "count"),
    [("G", 10), ("P", 54), ("D", 32), ("F", 20), ("I", 18), ("O", 7), ("A", 40)],
)
def test_the_rules_of_a_letter_are_numbered_without_a_gap(
    letter: str, count: int, explained: set[str]
) -> None:
    numbers = sorted(int(rule[1:]) for rule in explained if rule[0] == letter)
    assert numbers == list(range(1, count + 1))


def test_every_rule_that_is_cited_is_explained(explained: set[str]) -> None:
    found = {str(path.relative_to(PROJECT)): citations(path) - explained for path in citing()}
    assert {path: rules for path, rules in found.items() if rules} == {}
