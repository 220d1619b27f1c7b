"""Findings by SHA-256, and their status in later runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import MESSAGE_ID
from outbox.reconciliation.log import LogRecord, Partition
from outbox.reconciliation.snapshot import HeldRecord, KnownHalf
from spark.compare import open_items
from spark.compare.sha256_check import alteration_of, remaining_alterations
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from tests.fixtures_replacing import replace
from tests.unit.spark.fixtures_suspects import COMMITTED, HALF, make_hold, read

HOME = Partition("points", 0)
OTHER = replace(HALF, half_id=HalfId(HALF.half_id + 16))
FOUND = Finding(
    finding_class=FindingClass.CORRUPT_VALUE,
    subject=f"message:{HALF.message_id}",
    half_id=HALF.half_id,
    topic="points",
    partition=0,
    offset=5,
    by_sha256=True,
)
REPAIRED = make_hold(released=True, repair="order")


@dataclass
class Stores:
    """Both stores as far as they are asked here."""

    record: LogRecord | None = None
    known: KnownHalf | None = COMMITTED
    hold: HeldRecord | None = None

    def halves(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, KnownHalf]:
        """Return the half message, if it is known."""
        return {HALF.half_id: self.known} if self.known and half_ids else {}

    def held_records(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, HeldRecord]:
        """Return how it is held, if it is."""
        return {HALF.half_id: self.hold} if self.hold and half_ids else {}

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Return the record, if it is asked for and there."""
        return [self.record] if self.record and (HOME, 5) in places else []


def still(stores: Stores, start: int | None = 0) -> list[Finding]:
    """Look at the finding again; ``start`` None is a partition that this run does not read."""
    starts = {} if start is None else {HOME: start}
    asked = cast("Any", stores)
    return list(remaining_alterations([FOUND], asked, asked, starts))


def bearing(message_id: bytes | None) -> LogRecord:
    """Return the altered record with another message id."""
    record = read(value=b"crafted")
    headers = tuple((n, message_id if n == MESSAGE_ID else v) for n, v in record.headers)
    return replace(record, headers=headers)


@pytest.mark.parametrize(
    ("stores", "start", "kept"),
    [
        (Stores(read(value=b"crafted")), 0, True),
        (Stores(bearing(str(replace(HALF, nonce=Nonce(43)).message_id).encode())), 0, True),
        (Stores(None), 0, True),
        (Stores(read(value=b"crafted")), None, True),
        (Stores(read()), 0, False),
        (Stores(read(value=b"crafted")), 6, False),
        (Stores(read(value=b"crafted"), known=None), 0, False),
        (Stores(read(value=b"crafted"), hold=REPAIRED), 0, False),
        (Stores(read(value=b"crafted"), hold=replace(REPAIRED, released=False)), 0, True),
        (Stores(bearing(str(OTHER.message_id).encode())), 0, False),
        (Stores(bearing(b"\xff")), 0, False),
    ],
)
def test_a_finding_stays_until_its_record_is_correct_repaired_or_expired(
    stores: Stores, start: int | None, kept: bool
) -> None:
    assert still(stores, start) == ([FOUND] if kept else [])


def test_a_message_with_one_right_record_is_not_altered() -> None:
    assert alteration_of(HALF, [read(value=b"crafted"), read()]) is None
    assert alteration_of(HALF, []) is None


def test_another_message_id_is_a_header_that_differs() -> None:
    record = replace(bearing(b"another id"), value=HALF.message.value)
    found = alteration_of(HALF, [record])
    assert found is not None
    assert found.detail["differs"] == {"header": [MESSAGE_ID]}


def test_a_run_that_carries_nothing_else_carries_what_no_full_read_finds() -> None:
    lost = replace(FOUND, finding_class=FindingClass.WRONG_OFFSET, by_sha256=False)
    assert list(open_items.carried_findings(open_items.permanent_rows([FOUND, lost]))) == [FOUND]
