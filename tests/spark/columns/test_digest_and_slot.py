"""The Column expressions against the library's own functions, on random and malformed records."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

from outbox.messages import record
from outbox.messages.content_digest import content_digest
from outbox.messages.message_id import NONCE_BITS, HalfId, Nonce, message_id_of
from spark.columns import digest, slot
from tests.spark.fixtures_log_rows import log
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

ID = str(message_id_of(HalfId(123456789 << 15 | 77 << 4 | 5), Nonce(42)))
GROUP = (record.PRODUCER_GROUP, "billing")


def named(session: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Return records as a run reads them."""
    return slot.with_half_id(digest.described(log(session, *rows)))


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
        covered: list[tuple[str, str | None]] = [GROUP] + [
            (random.choice("añ日"), random.choice(["", "north", "ünïcode", None]))
            for _ in range(random.randrange(4))
        ]
        rows.append({"key": key, "value": value, "headers": headers(*leading(), *covered)})
        encoded = [(name, None if text is None else text.encode()) for name, text in covered]
        expected.append(content_digest(ID.encode(), "points", key, value, encoded))
    found = named(session, *rows).orderBy("offset").select("digest")
    assert [row["digest"] for row in found.collect()] == expected


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
    table = pa.table({"message_id": [str(each) for each in ids]})
    found = slot.with_half_id(session.createDataFrame(table)).select("half_id")
    assert [row["half_id"] for row in found.collect()] == half_ids
