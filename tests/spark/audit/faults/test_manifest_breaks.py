"""Manifests that chain, but list what the commit log or the topic does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

import pytest

from outbox.messages.manifest import HELD, PREFIX, PUBLISHED, Entry, Kind, crc_of
from outbox.messages.message import HalfMessage, Resolution
from spark.audit.audit import Audit
from spark.checks.manifest_contents import (
    OTHER_COUNT,
    OTHER_ENTRIES,
    PUBLISHED_TWICE,
    UNLISTED_RECORD,
)
from spark.findings.finding_class import Cause
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter, ShardState

pytestmark = [*REAL_STORES, pytest.mark.deep]

CRC_BYTES: Final = 4
KEYS = (b"one", b"two", b"three", b"five", b"seven", b"nine", b"ten", b"eleven")


def list_entries(writer: OutboxWriter, halves: Sequence[HalfMessage], statuses: bytes) -> None:
    """Publish the records of the next batch in the order of their commits, and list these."""
    shard = halves[0].shard
    ((_, position, half_ids),) = [each for each in writer._committed() if each[0] == shard]
    state = writer.shards[shard]
    entries = tuple(
        Entry(half.message_id.bytes, bytes([status]))
        for half, status in zip(halves, statuses, strict=True)
    )
    manifest = writer._manifest(shard, state, position, entries)
    by_id = {half.half_id: half for half in halves}
    records = [
        writer.record(by_id[half_id], f"{shard}.{state.batch_no + 1}.{index}")
        for index, half_id in enumerate(half_ids)
    ]
    writer._transaction(records, (shard, manifest))
    state.position, state.crc, state.batch_no = position, crc_of(manifest), state.batch_no + 1


def miscount(writer: OutboxWriter, half: HalfMessage) -> None:
    """Publish the next batch, whose manifest says that it has one record more than it lists."""
    state = writer.shards.setdefault(half.shard, ShardState())
    ((_, position, _),) = [each for each in writer._committed() if each[0] == half.shard]
    entries = (Entry(half.message_id.bytes, PUBLISHED),)
    body = bytearray(writer._manifest(half.shard, state, position, entries)[:-CRC_BYTES])
    body[PREFIX.size - 1] += 1
    manifest = bytes(body) + crc32(body).to_bytes(CRC_BYTES, "big")
    record = writer.record(half, f"{half.shard}.{state.batch_no + 1}.0")
    writer._transaction([record], (half.shard, manifest))
    writer._settle()


def release(writer: OutboxWriter, half: HalfMessage) -> None:
    """List a message as released, without any record."""
    state = writer.shards[half.shard]
    entries = (Entry(half.message_id.bytes, PUBLISHED),)
    manifest = writer._manifest(half.shard, state, state.position, entries, Kind.RELEASE)
    writer._transaction([], (half.shard, manifest))
    state.crc, state.batch_no = crc_of(manifest), state.batch_no + 1


def test_what_a_manifest_lists_is_compared_with_the_commits_the_records_and_the_others(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    by_shard = {(half := writer.prepare(topic, 1, key=key)[0]).shard: (key, half) for key in KEYS}
    (swapped, a), (held, b), (_, c), (_, d), *rest = by_shard.values()
    writer.end([half for _, half in by_shard.values() if half != d], Resolution.COMMIT)
    writer.publish()
    assert rest

    pairs = [[writer.prepare(topic, 1, key=key)[0] for _ in "12"] for key in (swapped, held)]
    writer.end([each for pair in pairs for each in pair], Resolution.COMMIT)
    list_entries(writer, pairs[0][::-1], PUBLISHED * 2)
    list_entries(writer, pairs[1], PUBLISHED + HELD)
    release(writer, c)
    writer.end([d], Resolution.COMMIT)
    miscount(writer, d)
    for _ in "12":
        report = Audit(parts, options).run()
        store_run(report, parts.run_store, samples=50)
        found = {f.shard: {row["fault"] for row in f.evidence["breaks"]} for f in report.findings}
        assert {f.cause for f in report.findings} == {Cause.MANIFEST_BREAK_CHAIN}
        assert OTHER_COUNT in found.pop(d.shard)
        assert found == {
            a.shard: {OTHER_ENTRIES},
            b.shard: {UNLISTED_RECORD},
            c.shard: {PUBLISHED_TWICE},
        }
