"""A few new rows are even only if each message has one record, equal and in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from outbox.messages.manifest import START, Entry, Kind, Manifest, Position, encode
from outbox.messages.message_id import Nonce, Shard, half_id_of, message_id_bytes, message_id_of
from outbox.reconciliation.log import LogRecord, Partition
from outbox.reconciliation.snapshot import LoggedCommit
from spark.cut.checkpoint import Mark
from spark.even.evenness import matched, require_order, require_places, unread
from spark.even.rows import (
    HEADERS,
    ListedManifest,
    PlainRecord,
    Uneven,
    listed_manifests,
    plain_records,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
IDS = [half_id_of(900, n, Shard(3)) for n in range(3)]
COMMITS = [LoggedCommit(3, 900, n, AT, half_id, 70 + n) for n, half_id in enumerate(IDS, 1)]
RECORDS = [
    PlainRecord(
        half_id=half_id,
        message_id=str(message_id_of(half_id, Nonce(1))),
        topic="a",
        partition=0,
        offset=n,
        published_at=AT,
        shard=3,
        batch_no=7,
        index=n,
        digest=71 + n,
        key_hash=5,
        home=4,
        producer_group="g",
    )
    for n, half_id in enumerate(IDS)
]
BATCH = Manifest(
    installation=UUID(int=1),
    shard=3,
    gen=1,
    kind=Kind.BATCH,
    batch_no=7,
    prev_crc=66,
    after=Position(800, 1),
    to=Position(900, 2),
    entries=tuple(Entry(message_id_bytes(each, Nonce(1)), b"P") for each in IDS[:2]),
)
FIRST, LAST, AHEAD = RECORDS[0], RECORDS[1], replace(RECORDS[2], batch_no=8, index=0)


@pytest.mark.parametrize(
    ("batch", "commits", "records", "even"),
    [
        (BATCH, COMMITS, [FIRST, LAST], True),
        (BATCH, COMMITS, [FIRST, LAST, AHEAD], True),
        (BATCH, COMMITS, [FIRST], False),
        (BATCH, COMMITS, [FIRST, LAST, LAST], False),
        (BATCH, COMMITS, [FIRST, replace(LAST, digest=0)], False),
        (BATCH, COMMITS, [replace(FIRST, index=1), replace(LAST, index=0)], False),
        (BATCH, COMMITS, [FIRST, replace(LAST, message_id="another")], False),
        (BATCH, COMMITS, [FIRST, LAST, replace(AHEAD, batch_no=99)], False),
        (BATCH, COMMITS[:2], [FIRST, LAST, AHEAD], False),
        (replace(BATCH, to=Position(900, 3)), COMMITS, [FIRST, LAST], False),
        (replace(BATCH, entries=BATCH.entries[::-1]), COMMITS, [FIRST, LAST], False),
        (
            replace(BATCH, entries=BATCH.entries[:1] * 2),
            [COMMITS[0], COMMITS[0]._replace(n=2)],
            [FIRST, replace(FIRST, index=1)],
            False,
        ),
    ],
)
def test_rows_are_even_only_if_each_message_has_its_record(
    batch: Manifest, commits: list[LoggedCommit], records: list[PlainRecord], even: bool
) -> None:
    listed = {3: [ListedManifest(1, 1, batch)]}
    assert is_even(lambda: matched(listed, commits, records, {3: 7}, {3: 9})) is even


@pytest.mark.parametrize(
    ("mark", "manifests", "even"),
    [
        (Mark(1, 66), [replace(BATCH, batch_no=6, to=BATCH.after), BATCH], True),
        (Mark(1, 67), [replace(BATCH, batch_no=6, to=BATCH.after), BATCH], False),
        (Mark(1, 66), [replace(BATCH, batch_no=5, to=BATCH.after), BATCH], False),
        (None, [replace(BATCH, batch_no=1, prev_crc=0, after=START)], True),
        (None, [BATCH], False),
    ],
)
def test_manifests_are_even_only_if_they_follow_in_turn(
    mark: Mark | None, manifests: list[Manifest], even: bool
) -> None:
    listed = [ListedManifest(at, 65 + at, each) for at, each in enumerate(manifests, 1)]
    assert is_even(lambda: unread(3, listed, mark)) is even


def test_manifests_and_records_that_cannot_be_judged_are_uneven() -> None:
    manifest = LogRecord(
        partition=Partition("p", 3), offset=7, key=None, value=encode(BATCH), headers=()
    )
    assert is_even(lambda: listed_manifests([manifest], {}, 2))
    assert not is_even(lambda: listed_manifests([manifest], {}, 1))
    assert is_even(lambda: listed_manifests([manifest], {3: Mark(7, 66)}, 1))
    headers = zip(HEADERS, (FIRST.message_id, "3.7.0", "", "g"), strict=True)
    record = replace(manifest, headers=tuple((name, text.encode()) for name, text in headers))
    assert is_even(lambda: list(plain_records([record])))
    assert not is_even(lambda: list(plain_records([replace(record, written_at_ms=1 << 62)])))


def test_order_and_partition_are_looked_at() -> None:
    swapped = [replace(FIRST, offset=1), replace(LAST, offset=0)]
    assert not is_even(lambda: require_order(swapped))
    assert is_even(lambda: require_order([FIRST, LAST]))
    assert not is_even(lambda: require_places([FIRST], {"a": 3}))
    assert is_even(lambda: require_places([FIRST], {"a": 2}))


def is_even(look: Callable[[], object]) -> bool:
    """Return whether a look at the rows finds nothing for Spark."""
    try:
        look()
    except Uneven:
        return False
    return True
