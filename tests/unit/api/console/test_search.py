"""The search box, as text in and filters out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from api.console.search import EXAMPLE, LONGEST, QUALIFIERS, SearchInvalid, parse_search
from outbox.messages.message import State

NOW = datetime(2026, 9, 21, 14, 14, 2, tzinfo=UTC)


def test_the_example_becomes_filters_of_the_api() -> None:
    search = parse_search(EXAMPLE, NOW)
    assert search.query(State.PREPARED) == {
        "state": "PREPARED",
        "producer_group": "billing",
        "prepared_to": "2026-09-21T14:09:02Z",
        "min_checks": "4",
    }


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("", {}),
        ("topic:a.b", {"topic": "a.b"}),
        ('tag:"two words"', {"tag": "two words"}),
        ("transaction:order:7", {"transaction_id": "order:7"}),
        ("by:operator outcome:timeout", {"decided_by": "operator", "last_outcome": "timeout"}),
        ("age:<2h", {"prepared_from": "2026-09-21T12:14:02Z"}),
        ("age:>9999d", {"prepared_to": "1999-05-07T14:14:02Z"}),
        ("checks:>=3", {"min_checks": "3"}),
    ],
)
def test_a_qualifier_is_a_filter(text: str, filters: dict[str, str]) -> None:
    assert parse_search(text, NOW).filters == filters


@pytest.mark.parametrize(
    "text", ["0f6c1c0e-8d0b-4c55-9a54-6f2b7c1d9e10", "cust-58", "orders/3@12", "order:7", '"a b"']
)
def test_one_word_without_a_qualifier_is_an_id(text: str) -> None:
    search = parse_search(text, NOW)
    assert (search.word, search.filters) == (text.strip('"'), {})


@pytest.mark.parametrize(
    "text",
    [
        "age:5m",
        "age:>5",
        "age:>12345d",
        "checks:3",
        "checks:>x",
        "state:open",
        "group:",
        'tag:"a',
        "two words",
        "group:a word",
        "state:parked word",
        "x" * (LONGEST + 1),
    ],
)
def test_what_is_not_understood_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(SearchInvalid, match=r"\w"):
        parse_search(text, NOW)


def test_every_qualifier_is_understood() -> None:
    values = {"state": "parked", "age": ">1m", "checks": ">1"}
    for name in QUALIFIERS:
        search = parse_search(f"{name}:{values.get(name, 'x')}", NOW)
        assert search.filters or search.state
