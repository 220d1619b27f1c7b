"""Links of pages lead somewhere, files and settings that they name exist, each page is listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from outbox.settings.catalogue import Settings
from tests.fixtures_paths import PROJECT
from tests.unit.docs.fixtures_anchors import anchors
from tests.unit.docs.fixtures_pages import EDITED, PAGES, name

DOCS = PROJECT / "docs"
INDEX = DOCS / "README.md"
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
SETTING = re.compile(r"\bOUTBOX_([A-Z]+(?:_[A-Z]+)*)\b(?![_…])")
BESIDE = {"CONFIG", "CHECK_SECRET", "FUZZ_CASES"}
"""Variables of the command and of tests."""
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|sql|md|json|yml|sh|html))`")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


@pytest.mark.parametrize("page", EDITED, ids=name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    missing = [
        path
        for path in FILE.findall(page.read_text("utf-8"))
        if not any((root / path).exists() for root in (PROJECT, DOCS, page.parent))
    ]
    assert missing == []


@pytest.mark.parametrize("page", EDITED, ids=name)
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    named = set(SETTING.findall(page.read_text("utf-8")))
    known = {field.upper() for field in Settings.model_fields} | BESIDE
    assert {each for each in named if each.removesuffix("_FILE") not in known} == set()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=name)
def test_a_page_is_reached_from_the_readme_or_its_list_of_pages(page: Path) -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    assert f"(docs/{page.name})" in readme or f"({page.name})" in INDEX.read_text("utf-8")
