"""Records crafted to the content digest of their messages: XXH64 is deceived, SHA-256 is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Final

import pytest
from xxhash import xxh64_intdigest

from outbox.messages.content_digest import SEED
from outbox.messages.message import Resolution
from outbox.messages.record import MESSAGE_ID, Record
from spark.audit.audit import Audit
from spark.columns.digest import Digest
from spark.compare.sha256_check import EQUAL_BY
from spark.report.report import Report
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = [*REAL_STORES, pytest.mark.deep]

VALUE: Final = b"what was prepared: two stripes of XXH64, of 32 bytes each, no more"[:64]
PRIMES: Final = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F)
"""By which a lane of XXH64 takes in 8 bytes."""
WRAP: Final = 1 << 64


def test_a_crafted_record_is_reported_by_sha256_alone_until_it_is_repaired(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = writer.prepare(topic, 6, value=VALUE, headers=(("tenant", "north"),))
    writer.end(halves, Resolution.COMMIT)
    crafts = (_of_another_value, _of_other_headers)
    crafted = {str(half.message_id): each for half, each in zip(halves, crafts, strict=False)}
    writer.publish(lambda record: _published(record, crafted.get(_message_id(record))))
    valued, headed = crafted

    assert _run(parts, options).findings == ()
    audited = _run(parts, replace(options, full=True, digest=Digest.SHA256))
    assert _classes(audited) == {valued: "CORRUPT_VALUE", headed: "HEADER_DRIFT"}
    details = [each.detail for each in audited.findings]
    assert [each["digests"] for each in details] == [EQUAL_BY, EQUAL_BY]
    assert [list(each["differs"]) for each in details] == [["value"], ["header"]]
    assert details[1]["differs"]["header"] == ["north", "tenant"]

    writer.order_repair(halves[0])
    unasked = _run(parts, replace(options, full=True))
    assert _classes(unasked) == {valued: "REDRIVEN", headed: "HEADER_DRIFT"}
    assert {audited.findings[1].finding_id} == unasked.changes.known_ids
    assert unasked.changes.fixed == 1


def _run(parts: RunContext, options: Options) -> Report:
    """Run and store the outcome."""
    report = Audit(parts, options).run()
    store_run(report, parts.run_store, samples=5)
    return report


def _classes(report: Report) -> dict[str | None, str]:
    return {each.message_id: each.finding_class.value for each in report.findings}


def _published(record: Record, craft: Callable[[Record], Record] | None) -> Iterable[Record]:
    return (craft(record) if craft else record,)


def _message_id(record: Record) -> str:
    return dict(record.headers)[MESSAGE_ID].decode()


def _of_other_headers(record: Record) -> Record:
    """Make one header of a value two without any: the digest chains fields and skips nulls."""
    *others, (name, text) = record.headers
    headers = (*others, (name, None), (text.decode(), None))
    return record._replace(headers=headers)  # type: ignore[arg-type]


def _of_another_value(record: Record) -> Record:
    """Change the first lane of a value and compensate it in the next 8 bytes of that lane."""
    fields = (_message_id(record).encode(), record.topic.encode(), b"kv", record.key or b"")
    seed = reduce(lambda digest, field: xxh64_intdigest(field, digest), fields, SEED)
    value = record.value or b""
    first, second = (int.from_bytes(value[at : at + 8], "little") for at in (0, 32))
    gained = _taken_in(seed, first) - _taken_in(seed, first + 1)
    compensated = (second + gained * pow(PRIMES[1], -1, WRAP)) % WRAP
    other = _bytes(first + 1) + value[8:32] + _bytes(compensated) + value[40:]
    assert xxh64_intdigest(other, seed) == xxh64_intdigest(value, seed)
    return record._replace(value=other)


def _taken_in(seed: int, word: int) -> int:
    """Return the first lane of XXH64 after its first 8 bytes."""
    mixed = (seed + sum(PRIMES) + word * PRIMES[1]) % WRAP
    return (mixed << 31 | mixed >> 33) * PRIMES[0] % WRAP


def _bytes(word: int) -> bytes:
    return word.to_bytes(8, "little")
