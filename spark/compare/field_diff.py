"""Compares a record with its half message field by field, and shows differences without content.

Used where the digests differ. The worst difference names the finding, the others
are in its evidence. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from outbox.messages.message import HalfMessage
from outbox.messages.record import MESSAGE_ID, covered_headers
from outbox.reconciliation.log import LogRecord
from spark.columns.digest import covered_in, message_id_in
from spark.compare.decision_table import Content
from spark.findings.sanitizer import sanitized

ALTERED: Final = "as it is stored, which is not what was prepared: the stored digest differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The worst difference, and the evidence of each difference without any value."""

    content: Content
    evidence: Mapping[str, Any] = field(default_factory=dict)


def compare(half: HalfMessage, record: LogRecord) -> Comparison:
    """Compare a record with what the half message should have become."""
    message = half.message
    differences: dict[Content, Any] = {}
    if record.partition.topic != message.topic:
        differences[Content.TOPIC] = {"expected": message.topic, "actual": record.partition.topic}
    if record.value != message.value:
        differences[Content.VALUE] = _byte_difference(message.value, record.value)
    if record.key != message.key:
        differences[Content.KEY] = _byte_difference(message.key, record.key)
    if names := _header_differences(half, record):
        differences[Content.HEADER] = names
    worst = next(iter(differences), Content.VALUE)
    evidence = {each.value: found for each, found in differences.items()}
    return Comparison(content=worst, evidence=evidence or {Content.VALUE.value: ALTERED})


def _header_differences(half: HalfMessage, record: LogRecord) -> list[str]:
    """Return the names of headers that are missing, added, changed or out of order."""
    expected = [(MESSAGE_ID, str(half.message_id).encode()), *covered_headers(half.message)]
    actual = [(MESSAGE_ID, message_id_in(record)), *covered_in(record)]
    if actual == expected:
        return []
    names = {name for name, _ in {*actual} ^ {*expected}}
    return sorted(sanitized(name) for name in names) or ["the order of the headers"]


def _byte_difference(expected: bytes | None, actual: bytes | None) -> dict[str, Any]:
    return {
        "expected": _fingerprint(expected),
        "actual": _fingerprint(actual),
        "first_difference_at": _first_difference(expected or b"", actual or b""),
    }


def _fingerprint(given: bytes | None) -> dict[str, Any] | None:
    return None if given is None else {"bytes": len(given), "sha256": sha256(given).hexdigest()}


def _first_difference(expected: bytes, actual: bytes) -> int:
    pairs = zip(expected, actual, strict=False)
    shorter = min(len(expected), len(actual))
    return next((place for place, (a, b) in enumerate(pairs) if a != b), shorter)
