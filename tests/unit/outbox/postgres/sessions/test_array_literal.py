"""Arrays in PostgreSQL's text form."""

from __future__ import annotations

import pytest

from outbox.postgres.sessions.array_literal import (
    nullable_number_array,
    number_array,
    text_array,
)


def test_numbers_are_separated_by_commas() -> None:
    assert number_array([1, -2, 9_223_372_036_854_775_807]) == "{1,-2,9223372036854775807}"


def test_an_array_may_be_empty() -> None:
    assert (number_array([]), nullable_number_array([]), text_array([])) == ("{}", "{}", "{}")


def test_a_number_may_be_null() -> None:
    assert nullable_number_array([7, None, 0]) == "{7,NULL,0}"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", '"plain"'),
        ("", '""'),
        ("NULL", '"NULL"'),
        ("a,b}", '"a,b}"'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ('\\"', r'"\\\""'),
        (None, "NULL"),
    ],
)
def test_a_text_is_quoted_so_that_it_ends_where_it_should(text: str | None, written: str) -> None:
    assert text_array([text, "z"]) == f'{{{written},"z"}}'
