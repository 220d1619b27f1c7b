"""A repeated prepare is the same request only if every field of it is equal."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.postgres.messages.half_rows import difference
from tests.fixtures_messages import make_message

FULL: dict[str, Any] = {
    "topic": "invoices",
    "partition": 3,
    "key": b"member-1",
    "value": b"100",
    "headers": (("tenant", b"north"), ("shop", b"a")),
    "content_type": "application/json",
    "tags": ("x", "y"),
    "check_immunity_seconds": 60,
}
OTHER: list[tuple[str, Any, Any]] = [
    ("topic", "invoices", "invoices-2"),
    ("partition", 3, 4),
    ("partition", 0, None),
    ("key", b"member-1", b"member-2"),
    ("key", b"", None),
    ("value", b"100", b"101"),
    ("value", b"", None),
    ("headers", (("tenant", b"north"),), (("tenant", b"south"),)),
    ("headers", (("tenant", b"north"),), (("shop", b"north"),)),
    ("headers", (("tenant", b""),), ()),
    ("headers", (("tenant", b""),), (("tenant", None),)),
    ("content_type", "application/json", "text/plain"),
    ("content_type", "application/json", None),
    ("tags", ("x", "y"), ("x",)),
    ("check_immunity_seconds", 60, 61),
    ("check_immunity_seconds", 60, None),
]


def test_equal_fields_are_the_same_request() -> None:
    assert difference(make_message(**FULL), make_message(**FULL)) is None


@pytest.mark.parametrize(("field", "stored", "asked"), OTHER)
def test_another_value_of_a_field_is_another_request(field: str, stored: Any, asked: Any) -> None:
    first, second = (make_message(**(FULL | {field: value})) for value in (stored, asked))
    assert difference(first, second) == difference(second, first) == field


@pytest.mark.parametrize("field", ["headers", "tags"])
def test_the_order_of_headers_and_tags_is_free_because_they_are_sets(field: str) -> None:
    turned = tuple(reversed(FULL[field]))
    assert difference(make_message(**FULL), make_message(**(FULL | {field: turned}))) is None


def test_a_retry_may_come_with_another_trace_and_another_api_key() -> None:
    again = make_message(**FULL, traceparent="00-1-2-01", key_id="key-2")
    assert difference(make_message(**FULL), again) is None
