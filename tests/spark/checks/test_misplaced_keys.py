"""What a run stores about keys outside their expected partition, on a few records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

from outbox.reconciliation.run import CarriedRow
from spark.checks import misplaced_keys
from spark.columns import schemas
from spark.columns.segments import JUDGED
from spark.compare import open_items
from spark.cut import carry_over
from spark.cut.checkpoint import MisplacedKeys, Previous
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from spark.findings.topic_rules import topic_rules
from tests.spark.fixtures_markers import ON_SPARK
from tests.spark.fixtures_previous_run import previous

pytestmark = ON_SPARK

RECORDS = pa.schema(
    [
        *(("half_id", pa.int64()), ("topic", pa.string()), ("partition", pa.int32())),
        *(("key_hash", pa.int64()), ("home", pa.int32()), ("batch_no", pa.int64())),
        *(("ahead", pa.bool_()), ("carried", pa.bool_())),
    ]
)
REQUESTED = 90
"""Half messages from this id on requested a partition."""
PARTITIONS = {"points": 2}
EXPECTED, ELSEWHERE = (4, 0), (4, 1)
"""A key's murmur2, and the partition that its record is in."""


def record(
    half_id: int = 1, key: int | None = 7, place: tuple[int, int] = EXPECTED, **fields: Any
) -> dict[str, Any]:
    """Return a record that no run has read, up to the cut."""
    home, partition = place
    placed = {"topic": "points", "partition": partition, "key_hash": key}
    known = {"home": None if key is None else home, "ahead": False, "carried": False}
    return {"half_id": half_id, "batch_no": 3, **placed, **known, **fields}


def before(known: Mapping[str, MisplacedKeys], *carried: CarriedRow) -> Previous:
    """Return a run that has read the topic and checked its keys."""
    return previous(
        *carried, topics=("points",), misplaced={"points": MisplacedKeys(2)} | dict(known)
    )


def why_whole(session: SparkSession, last: Previous, *rows: dict[str, Any]) -> str | None:
    """Return the reason of a run with these records, whose judged commits have odd ids."""
    records = schemas.frame_of(session, rows, RECORDS)
    commits = session.range(1, 1000, 2).toDF("half_id").selectExpr("*", f"'{JUDGED}' AS standing")
    elsewhere = sum(map(is_elsewhere, rows))
    frames: Any = SimpleNamespace(records=records, new_commits=commits, elsewhere=elsewhere)
    return misplaced_keys.full_read_reason(last, frames, PARTITIONS, free_of(session))


def is_elsewhere(row: Mapping[str, Any]) -> bool:
    """Whether a record is in another partition than its key's, as a small run counts them."""
    home = row["home"]
    return home is not None and home % PARTITIONS[row["topic"]] != row["partition"]


def free_of(session: SparkSession) -> misplaced_keys.UnrequestedReader:
    """Return what reads the half messages that asked for no partition."""

    def free(topics: Collection[str], half_ids: tuple[int, int] | None) -> DataFrame:
        assert set(topics) == {"points"}
        low, high = half_ids or (0, REQUESTED)
        return session.range(low, min(high + 1, REQUESTED)).toDF("half_id")

    return free


def test_a_run_that_reads_keys_where_they_belong_reads_nothing_else(session: SparkSession) -> None:
    rows = (record(), record(3, key=None, place=ELSEWHERE), record(5, place=(5, 1)))
    assert why_whole(session, before({}), *rows) is None


@pytest.mark.parametrize(
    ("known", "row"),
    [
        ({}, record(place=ELSEWHERE)),
        ({"points": MisplacedKeys(2, frozenset({7}))}, record()),
        ({"points": MisplacedKeys(2, None)}, record()),
        ({}, record(place=ELSEWHERE, carried=True)),
        ({"points": MisplacedKeys(2, frozenset({7}))}, record(carried=True)),
    ],
    ids=["misplaced", "was misplaced", "too many", "misplaced, once ahead", "was so, once ahead"],
)
def test_a_key_that_may_be_in_two_partitions_makes_a_run_read_everything(
    session: SparkSession, known: Mapping[str, MisplacedKeys], row: dict[str, Any]
) -> None:
    carried = CarriedRow(carry_over.RECORD, None, "{}")
    assert why_whole(session, before(known, carried), row) == misplaced_keys.SPLIT


def test_a_topic_with_a_reported_split_key_is_not_checked_again(session: SparkSession) -> None:
    split = Finding(finding_class=FindingClass.KEY_SPLIT, subject="topic:points", topic="points")
    last = before({}, open_items._finding_row(split))
    assert why_whole(session, last, record(place=ELSEWHERE)) is None


def test_a_run_that_goes_on_remembers_what_it_looks_at_alone() -> None:
    known = {
        "points": MisplacedKeys(2, frozenset({7})),
        "free now": MisplacedKeys(2, frozenset({8})),
    }
    found = misplaced_keys.kept_misplaced_keys(previous(misplaced=known), {"points": 2, "new": 3})
    assert found == {"points": MisplacedKeys(2, frozenset({7})), "new": MisplacedKeys(3)}


def test_misplaced_keys_are_stored_by_hash_unless_there_are_too_many(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        record(1),
        record(2, place=ELSEWHERE),
        record(3, key=8, place=ELSEWHERE),
        record(4, 8, ELSEWHERE),
    ]
    keyed = schemas.frame_of(session, [*rows, record(REQUESTED, key=9, place=ELSEWHERE)], RECORDS)
    found = misplaced_keys.find_misplaced_records(keyed, PARTITIONS, tmp_path.as_uri())
    assert found.count == 4
    free = free_of(session)
    assert misplaced_keys.misplaced_keys_by_topic(found, free) == {
        "points": MisplacedKeys(2, frozenset({7, 8}))
    }
    monkeypatch.setattr(misplaced_keys, "MOST_KEYS", 1)
    assert misplaced_keys.misplaced_keys_by_topic(found, free) == {"points": MisplacedKeys(2, None)}
    suspects = [row["half_id"] for row in misplaced_keys.possibly_split(keyed, found).collect()]
    assert sorted(suspects) == [1, 2, 3, 4, REQUESTED]
    monkeypatch.setattr(misplaced_keys, "MOST_BROADCAST", 1)
    assert misplaced_keys.possibly_split(keyed, found).count() == 5


def test_without_misplaced_records_only_keys_without_an_expected_partition_are_suspected(
    session: SparkSession, tmp_path: Path
) -> None:
    keyed = schemas.frame_of(session, [record(1), record(2, topic="free")], RECORDS)
    found = misplaced_keys.find_misplaced_records(keyed, PARTITIONS, tmp_path.as_uri())
    assert misplaced_keys.misplaced_keys_by_topic(found, free_of(session)) == {
        "points": MisplacedKeys(2)
    }
    assert [row["half_id"] for row in misplaced_keys.possibly_split(keyed, found).collect()] == [2]


def test_a_topic_whose_keys_may_be_anywhere_has_no_expected_partition(
    session: SparkSession,
) -> None:
    assert session
    rules = topic_rules({"any": {"partitioner": "any"}, "loose": {"ordered": False}})
    counts = {"any-1": 3, "loose-1": 3, "points": 2}
    assert misplaced_keys.fixed_key_topics(counts, rules) == {"points": 2}
