"""Code, SQL and pages are written in plain technical English: no phrase of the list is back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.fixtures_paths import PROJECT
from tests.unit.layout.fixtures_source_tree import PACKAGES

PHRASES = re.compile(
    r"\b(?:tells? of|(?:is|are) told|told of|of ours|made anew|as it stands"
    r"|lies (?:behind|ahead|before)|bears (?:a|the|no|our)|mend(?:s|ed)?|cure the|of a kind"
    r"|puts in order)\b",
    re.IGNORECASE,
)
WRITTEN = {".py", ".sql", ".md", ".toml", ".yml", ".html", ".css", ".sh", ".json", ".js", ".go"}
LEFT_AS_THEY_ARE = ("migrations/versions/", "CHANGELOG.md", "tests/unit/layout/test_language.py")
"""Applied migrations and the history of changes are never edited."""


def written() -> Iterator[Path]:
    """Yield the files of the project that people write, relative to it."""
    top = (path for path in PROJECT.iterdir() if path.is_file())
    roots = [*PACKAGES, "benchmarks", "deploy", "docs", "examples", "migrations", "tests"]
    below = (path for root in roots for path in (PROJECT / root).rglob("*"))
    for path in (*top, *below):
        name = path.relative_to(PROJECT)
        if path.suffix in WRITTEN and not str(name).startswith(LEFT_AS_THEY_ARE):
            yield name


def phrases(path: Path) -> list[str]:
    """Return the phrases that a file uses; a phrase may cross the end of a line."""
    text = re.sub(r"\s*\n[#\s]*", " ", (PROJECT / path).read_text("utf-8"))
    return [match.group() for match in PHRASES.finditer(text)]


def test_no_page_and_no_source_uses_a_phrase_of_the_former_dialect() -> None:
    assert {str(path): found for path in written() if (found := phrases(path))} == {}


def test_a_phrase_is_found_over_a_line_break_and_in_any_case() -> None:
    assert PHRASES.search("Made anew")
    assert PHRASES.search("a record that is told")
    assert not PHRASES.search("the commands amended")
