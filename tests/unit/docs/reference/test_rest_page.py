"""The tables of docs/rest.md are the contract's; tests/e2e/pages/test_rest_page.py types it."""

from __future__ import annotations

import re

import pytest

from api.admin.models.producer_groups import GroupRequest
from api.http.problems import KINDS
from tests.fixtures_paths import PROJECT
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT

PAGE = (PROJECT / "docs" / "rest.md").read_text("utf-8")


def section(heading: str) -> str:
    """Return the text below a heading."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its head."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def named(text: str) -> list[str]:
    """Return the words in code of a cell."""
    return re.findall(r"`([^`]+)`", text)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("Prepare", "PrepareRequest"),
        ("End", "EndRequest"),
        ("Register the producer group", "GroupRequest"),
    ],
)
def test_a_table_has_every_field_of_its_request(heading: str, name: str) -> None:
    shown = [field for cells in rows(heading) for field in named(cells[0])]
    assert sorted(shown) == sorted(DOCUMENT["components"]["schemas"][name]["properties"])


def test_the_defaults_of_a_group_are_those_of_the_contract() -> None:
    shown = {
        named(cells[0])[0]: cells[1].strip("`") for cells in rows("Register the producer group")
    }
    for field, info in GroupRequest.model_fields.items():
        default = info.get_default(call_default_factory=True)
        if not info.is_required() and field not in ("topics", "check_secret"):
            assert shown[field] == (
                str(default).lower() if isinstance(default, bool) else str(default)
            )


def test_every_problem_that_is_named_has_its_status() -> None:
    named_with_status = re.findall(r"\b(\d{3}) `([a-z]+-[a-z-]+)`", PAGE)
    assert len(named_with_status) > 3
    for status, slug in named_with_status:
        assert KINDS[slug].status == int(status)
