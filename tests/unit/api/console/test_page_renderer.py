"""Values of the API become words on a page."""

from __future__ import annotations

from typing import Any

import pytest

from api.console.page_renderer import value_words


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
