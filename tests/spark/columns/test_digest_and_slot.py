"""The Column expressions against the library's own functions, on random and malformed records."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from outbox.messages import record
from outbox.messages.content_digest import content_digest
from outbox.messages.manifest import Entry, Kind, Manifest, Position, crc_of, encode
from outbox.messages.message_id import NONCE_BITS, HalfId, Nonce, message_id_of
from spark.columns import digest, manifests, slot
from tests.spark.fixtures_log_rows import log
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

ID = str(message_id_of(HalfId(123456789 << 15 | 77 << 4 | 5), Nonce(42)))
GROUP = (record.PRODUCER_GROUP, "billing")


def named(session: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Return records as a run reads them, before it drops their headers."""
    texts = {"message_id": slot.id_text(), "batch": slot.batch()}
    return slot.with_half_id(log(session, *rows).withColumns(texts))


def headers(*pairs: tuple[str, str | None]) -> list[dict[str, Any]]:
    """Return headers as Spark's structs."""
    return [{"key": n, "value": None if t is None else t.encode()} for n, t in pairs]


def leading(message_id: str = ID, batch: str = "5.17.3") -> tuple[tuple[str, str], ...]:
    """Return the headers that come first."""
    return (
        (record.MESSAGE_ID, message_id),
        (record.BATCH, batch),
        (record.DECIDED_BY, "producer"),
    )


def test_the_digest_is_the_librarys_for_random_records(session: SparkSession) -> None:
    random = Random(20)
    rows, expected = [], []
    for _ in range(400):
        key = random.choice([None, b"", random.randbytes(random.randrange(40))])
        value = random.choice([None, b"", random.randbytes(random.randrange(1000))])
        covered = [GROUP] + [
            (random.choice("añ日"), random.choice(["", "north", "ünïcode"]))
            for _ in range(random.randrange(4))
        ]
        rows.append({"key": key, "value": value, "headers": headers(*leading(), *covered)})
        encoded = [(name, text.encode()) for name, text in covered]
        expected.append(content_digest(ID.encode(), "points", key, value, encoded))
    found = named(session, *rows).orderBy("offset").select(digest.content_digest().alias("d"))
    assert [row["d"] for row in found.collect()] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ([], None),
        (headers(GROUP), None),
        (headers((record.MESSAGE_ID, "not an id"), *leading()[1:]), "not an id"),
        (headers((record.MESSAGE_ID, None), *leading()[1:]), ""),
        (headers(GROUP, (record.MESSAGE_ID, None)), ""),
        (headers((record.MESSAGE_ID, ID.upper()), *leading()[1:]), ID.upper()),
    ],
    ids=["null", "none", "other", "malformed", "null value", "null elsewhere", "upper case"],
)
def test_a_record_without_a_well_formed_id_names_no_half_and_claims_an_id_if_it_has_the_header(
    session: SparkSession, given: list[dict[str, Any]] | None, expected: str | None
) -> None:
    (row,) = named(session, {"headers": given}).select("message_id", "half_id").collect()
    assert (row["message_id"], row["half_id"]) == (expected, None)


def test_the_half_id_is_read_out_of_the_message_id(session: SparkSession) -> None:
    random = Random(7)
    half_ids = [0, (1 << 63) - 1, *[random.getrandbits(63) for _ in range(200)]]
    ids = [message_id_of(HalfId(each), Nonce(random.getrandbits(NONCE_BITS))) for each in half_ids]
    table = pa.table({"text": [str(i) for i in ids], "raw": pa.array([i.bytes for i in ids])})
    text, raw = F.col("text"), F.col("raw")
    found = session.createDataFrame(table).select(
        slot.half_id_in(text), slot.half_id_in_bytes(raw), slot.uuid_text(raw)
    )
    assert [tuple(row) for row in found.collect()] == [
        (half_id, half_id, str(each)) for half_id, each in zip(half_ids, ids, strict=True)
    ]


def manifest(batch_no: int, prev_crc: int, *entries: Entry, **fields: Any) -> Manifest:
    """Return a manifest of shard 5 that continues the one before."""
    defaults: dict[str, Any] = {
        "installation": UUID(int=7),
        "shard": 5,
        "gen": 1,
        "kind": Kind.BATCH,
        "after": Position(batch_no, 1),
        "to": Position(batch_no + 1, 1),
    }
    return Manifest(batch_no=batch_no, prev_crc=prev_crc, entries=entries, **{**defaults, **fields})


def chain(session: SparkSession, *values: bytes) -> DataFrame:
    """Return these manifests as the progress topic holds them."""
    rows = [{"partition": 5, "value": value, "headers": None} for value in values]
    return manifests.with_prefix(log(session, *rows))


def test_a_manifest_is_read_field_by_field(session: SparkSession) -> None:
    entries = (Entry(UUID(ID).bytes, b"P"), Entry(UUID(int=9).bytes, b"K"))
    given = manifest(8, 123, *entries, after=Position(1 << 40, 2), to=Position(1 << 47, 2047))
    (row,) = chain(session, encode(given)).collect()
    assert row["intact"]
    assert (row["shard"], row["gen"], row["batch_no"], row["prev_crc"]) == (5, 1, 8, 123)
    assert (row["from_xid"], row["from_n"]) == given.after
    assert (row["to_xid"], row["to_n"]) == given.to
    assert (row["entries"], row["published"]) == (2, 1)
    assert row["crc"] == crc_of(encode(given))


def test_entries_have_their_status_and_place(session: SparkSession) -> None:
    entries = (Entry(UUID(int=9).bytes, b"K"), Entry(UUID(ID).bytes, b"P"))
    read = manifests.entries(
        chain(session, encode(manifest(8, 0, *entries)), encode(manifest(9, 0)))
    )
    found = {(row["index"], row["status"], row["message_id"]) for row in read.collect()}
    assert found == {(0, "K", str(UUID(int=9))), (1, "P", ID)}


def test_a_chain_has_no_breaks(session: SparkSession) -> None:
    first = encode(manifest(1, 0))
    assert manifests.breaks(chain(session, first, encode(manifest(2, crc_of(first))))).count() == 0
