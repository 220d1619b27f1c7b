"""A record beside its half message, field by field: which one differs, told without its content.

Used only where the digests differ. Of several differences the worst names the finding, the rest
stand in its detail. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from outbox.message import HalfMessage
from outbox.reconciliation import LogRecord
from outbox.record import covered_headers
from spark.classify import Content
from spark.digest import UNCOVERED
from spark.printable import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The worst difference, and evidence of each without any value."""

    content: Content
    detail: Mapping[str, Any] = field(default_factory=dict)


def compare(half: HalfMessage, record: LogRecord) -> Comparison:
    """Compare a record with what the half message should have become."""
    content = half.message.content
    differences: dict[Content, Any] = {}
    if record.partition.topic != content.topic:
        differences[Content.TOPIC] = {"expected": content.topic, "actual": record.partition.topic}
    if record.value != content.value:
        differences[Content.VALUE] = _bytes_apart(content.value, record.value)
    if record.key != content.key:
        differences[Content.KEY] = _bytes_apart(content.key, record.key)
    if names := _headers_apart(half, record):
        differences[Content.HEADER] = names
    worst = next(iter(differences), Content.HEADER)
    detail = {each.value: evidence for each, evidence in differences.items()}
    return Comparison(content=worst, detail=detail or {"header": ["the stored digest differs"]})


def _headers_apart(half: HalfMessage, record: LogRecord) -> list[str]:
    """Return the names of headers that are missing, added, changed or out of their order."""
    message = half.message
    expected = [
        (name, text.encode())
        for name, text in covered_headers(
            message.content, message.producer_group, message.transaction_id
        )
    ]
    actual = [header for header in record.headers if header[0] not in UNCOVERED]
    if actual == expected:
        return []
    apart = {name for name, _ in {*actual} ^ {*expected}}
    return sorted(printable(name) for name in apart) or ["the order of the headers"]


def _bytes_apart(expected: bytes | None, actual: bytes | None) -> dict[str, Any]:
    return {
        "expected": _described(expected),
        "actual": _described(actual),
        "first_difference_at": _first_difference(expected or b"", actual or b""),
    }


def _described(given: bytes | None) -> dict[str, Any] | None:
    return None if given is None else {"bytes": len(given), "sha256": sha256(given).hexdigest()}


def _first_difference(expected: bytes, actual: bytes) -> int:
    pairs = zip(expected, actual, strict=False)
    shorter = min(len(expected), len(actual))
    return next((place for place, (a, b) in enumerate(pairs) if a != b), shorter)
