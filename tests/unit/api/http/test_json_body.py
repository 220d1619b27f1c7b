"""JSON is read into a type; an error has a slug and a pointer and never repeats the input."""

from __future__ import annotations

import pytest

from api.http.json_body import PARTS_MAX, decode, parse
from api.http.problems import Problem
from api.ingest.schemas import END


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"decision":"COMMIT"} x',
        b'{"decision":NaN}',
        b'{"decision":"\xff"}',
        b'{"decision":"COMMIT","reason":"\\ud800"}',
        b"[" * 100_000,
    ],
)
def test_what_is_not_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Problem) as refused:
        parse(body) if body[:1] == b"[" else decode(body, END)
    assert refused.value.slug in ("malformed-json", "payload-too-large")


def test_a_body_without_a_type_has_a_bounded_number_of_parts() -> None:
    assert parse(b'{"a":[1,{"b":null}]}') == {"a": [1, {"b": None}]}
    with pytest.raises(Problem) as refused:
        parse(b"[" + b"0," * PARTS_MAX + b"0]")
    assert refused.value.slug == "payload-too-large"
