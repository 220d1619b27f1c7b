"""Values of the API become words on a page."""

from __future__ import annotations

from typing import Any

import pytest

from api.console.page_renderer import WORDS_MAX, thousands_text, value_words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        ([], "-"),
        (["a", 1], "a, 1"),
        ({"tag": "mine", "state": ["a", "b"]}, "tag mine, state a, b"),
        ({}, "-"),
        ("text", "text"),
    ],
)
def test_a_value_is_shown_as_people_write_it(value: Any, words: str) -> None:
    assert value_words(value) == words


def test_of_a_long_value_a_page_shows_the_beginning_and_its_length() -> None:
    assert value_words("x" * WORDS_MAX) == "x" * WORDS_MAX
    shown = value_words({"message_ids": ["m" * 36] * 1000})
    assert len(shown) < WORDS_MAX + 30
    assert shown.startswith("message_ids mmm")
    assert shown.endswith("(38010 characters)")


def test_a_large_number_is_read_in_thousands() -> None:
    shown = [thousands_text(number).replace("\u00a0", " ") for number in (2, 100_000)]
    assert shown == ["2", "100 000"]
