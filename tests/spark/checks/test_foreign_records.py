"""Records of other writers on frames of a few rows: one finding a topic."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from spark.checks import foreign_records
from spark.columns import schemas
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("half_id", pa.int64()),
        ("message_id", pa.string()),
    ]
)


def records(session: SparkSession, *rows: tuple[str, int, int, int | None]) -> DataFrame:
    """Return records by topic, partition, offset and half id."""
    given: list[dict[str, object]] = [dict(zip(RECORDS.names, row, strict=False)) for row in rows]
    return schemas.frame_of(session, given, RECORDS)


def test_each_run_adds_what_is_new_to_what_was_found_before(session: SparkSession) -> None:
    first = records(
        session,
        ("ours", 0, 3, None),
        ("ours", 0, 4, 7),
        ("ours", 0, 9, None),
        ("ours", 1, 2, None),
        ("others", 0, 1, None),
    )
    others, found = foreign_records.findings(first)
    assert (others.topic, others.evidence["records"]) == ("others", 1)
    assert (found.topic, found.partition, found.offset) == ("ours", 0, 3)
    assert found.evidence == {
        "records": 3,
        "partitions": {
            "0": {"records": 2, "first": 3, "last": 9},
            "1": {"records": 1, "first": 2, "last": 2},
        },
    }
    (more,) = foreign_records.findings(records(session, ("ours", 0, 12, None)), [found])
    assert more.finding_id == found.finding_id
    assert more.evidence["records"] == 4
    assert more.evidence["partitions"]["0"] == {"records": 3, "first": 3, "last": 12}
    assert list(foreign_records.findings(records(session, ("ours", 0, 13, 8)), [more])) == []


def test_a_malformed_message_id_claims_to_be_ours(
    session: SparkSession,
) -> None:
    given = [{"topic": "others", "partition": 1, "offset": at, "message_id": "?"} for at in (4, 6)]
    (found,) = foreign_records.findings(schemas.frame_of(session, given, RECORDS))
    assert (found.cause, found.topic, found.offset) == ("ORPHAN/unknown", "others", 4)
    assert found.evidence["records"] == 2
