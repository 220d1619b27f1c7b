"""What a run remembers of keys that lie elsewhere than Kafka puts them, on a few records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

from outbox.reconciliation.stored_run import CarriedRow
from spark.checks import misplaced_keys
from spark.columns import schemas
from spark.columns.segments import JUDGED
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
ASKED = 90
"""Half messages from here on asked for a partition."""
PARTITIONS = {"points": 2}
AT_HOME, AWAY = (4, 0), (4, 1)
"""A key's murmur2, and the partition that its record is in."""


def record(
    half_id: int = 1, key: int | None = 7, lies: tuple[int, int] = AT_HOME, **fields: Any
) -> dict[str, Any]:
    """Return a record that no run has read, up to the cut."""
    home, partition = lies
    placed = {"topic": "points", "partition": partition, "key_hash": key}
    known = {"home": None if key is None else home, "ahead": False, "carried": False}
    return {"half_id": half_id, "batch_no": 3, **placed, **known, **fields}


def before(known: Mapping[str, MisplacedKeys], *carried: CarriedRow) -> Previous:
    """Return a run that has read the topic and looked where its keys lie."""
    return previous(*carried, topics=("points",), away={"points": MisplacedKeys(2)} | dict(known))


def why_whole(session: SparkSession, last: Previous, *rows: dict[str, Any]) -> str | None:
    """Ask of a run that reads these records, and whose judged commits are all of an odd id."""
    records = schemas.frame_of(session, rows, RECORDS)
    commits = session.range(1, 1000, 2).toDF("half_id").selectExpr("*", f"'{JUDGED}' AS standing")
    frames: Any = SimpleNamespace(records=records, new_commits=commits)
    return misplaced_keys.why_whole(last, frames, PARTITIONS, free_of(session))


def free_of(session: SparkSession) -> misplaced_keys.Free:
    """Return what reads the half messages that asked for no partition."""

    def free(topics: Collection[str], half_ids: tuple[int, int] | None) -> DataFrame:
        assert set(topics) == {"points"}
        low, high = half_ids or (0, ASKED)
        return session.range(low, min(high + 1, ASKED)).toDF("half_id")

    return free


def test_a_run_that_reads_keys_where_they_belong_reads_nothing_else(session: SparkSession) -> None:
    rows = (record(), record(3, key=None, lies=AWAY), record(5, lies=(5, 1)))
    assert why_whole(session, before({}), *rows) is None


@pytest.mark.parametrize(
    ("known", "row"),
    [
        ({}, record(lies=AWAY)),
        ({"points": MisplacedKeys(2, frozenset({7}))}, record()),
        ({"points": MisplacedKeys(2, None)}, record()),
        ({}, record(lies=AWAY, carried=True)),
        ({"points": MisplacedKeys(2, frozenset({7}))}, record(carried=True)),
    ],
    ids=["away", "was away", "too many were away", "away and once ahead", "was away, once ahead"],
)
def test_a_key_that_may_lie_in_two_partitions_makes_a_run_read_everything(
    session: SparkSession, known: Mapping[str, MisplacedKeys], row: dict[str, Any]
) -> None:
    carried = CarriedRow(carry_over.RECORD, None, "{}")
    assert why_whole(session, before(known, carried), row) == misplaced_keys.SPLIT


@pytest.mark.parametrize(
    ("known", "row"),
    [
        ({}, record(ASKED, lies=AWAY)),
        ({"points": MisplacedKeys(2, frozenset({7}))}, record(ASKED + 1)),
        ({}, record(lies=AWAY, ahead=True)),
        ({}, record(2, lies=AWAY, carried=True)),
        ({"points": MisplacedKeys(3, frozenset({7}))}, record()),
        ({"points": MisplacedKeys(2, frozenset({8}))}, record()),
        ({"points": MisplacedKeys(2, None)}, record(key=None)),
        ({}, record(lies=AWAY, batch_no=None)),
    ],
    ids=[
        "a partition was asked for",
        "was away, a partition was asked for",
        "not judged yet",
        "judged before, still open",
        "was away among fewer partitions",
        "another key was away",
        "no key",
        "no batch",
    ],
)
def test_what_cannot_split_a_key_makes_no_run_read_everything(
    session: SparkSession, known: Mapping[str, MisplacedKeys], row: dict[str, Any]
) -> None:
    carried = CarriedRow(carry_over.RECORD, None, "{}")
    assert why_whole(session, before(known, carried), row) is None


def test_a_topic_whose_split_key_is_told_already_is_not_looked_at(session: SparkSession) -> None:
    split = Finding(finding_class=FindingClass.KEY_SPLIT, subject="topic:points", topic="points")
    last = before({}, carry_over._of_finding(split))
    assert why_whole(session, last, record(lies=AWAY)) is None


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        (("points",), misplaced_keys.UNKNOWN),
        (("points", "more"), misplaced_keys.UNKNOWN),
        ((), None),
    ],
)
def test_a_run_behind_one_that_read_a_topic_and_did_not_look_reads_everything(
    session: SparkSession, topics: tuple[str, ...], why: str | None
) -> None:
    """It was of an older version, on Spark Connect, or the topic's rule was another one."""
    assert why_whole(session, previous(topics=topics), record()) == why


def test_a_run_that_goes_on_remembers_what_it_looks_at_alone() -> None:
    known = {
        "points": MisplacedKeys(2, frozenset({7})),
        "free now": MisplacedKeys(2, frozenset({8})),
    }
    found = misplaced_keys.still_remembered(previous(away=known), {"points": 2, "new": 3})
    assert found == {"points": MisplacedKeys(2, frozenset({7})), "new": MisplacedKeys(3)}


def test_what_is_away_is_remembered_by_key_unless_it_is_too_much(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [record(1), record(2, lies=AWAY), record(3, key=8, lies=AWAY), record(4, 8, AWAY)]
    keyed = schemas.frame_of(session, [*rows, record(ASKED, key=9, lies=AWAY)], RECORDS)
    found = misplaced_keys.misplaced_records(keyed, PARTITIONS, tmp_path.as_uri())
    assert found.count == 4
    free = free_of(session)
    assert misplaced_keys.remembered(found, free) == {"points": MisplacedKeys(2, frozenset({7, 8}))}
    monkeypatch.setattr(misplaced_keys, "MOST", 1)
    assert misplaced_keys.remembered(found, free) == {"points": MisplacedKeys(2, None)}
    suspects = [row["half_id"] for row in misplaced_keys.suspected(keyed, found).collect()]
    assert sorted(suspects) == [1, 2, 3, 4, ASKED]
    monkeypatch.setattr(misplaced_keys, "MOST_BROADCAST", 1)
    assert misplaced_keys.suspected(keyed, found).count() == 5


def test_no_key_is_suspected_where_all_lie_at_home_but_those_without_a_home(
    session: SparkSession, tmp_path: Path
) -> None:
    keyed = schemas.frame_of(session, [record(1), record(2, topic="free")], RECORDS)
    found = misplaced_keys.misplaced_records(keyed, PARTITIONS, tmp_path.as_uri())
    assert misplaced_keys.remembered(found, free_of(session)) == {"points": MisplacedKeys(2)}
    assert [row["half_id"] for row in misplaced_keys.suspected(keyed, found).collect()] == [2]


def test_a_topic_whose_keys_may_lie_anywhere_has_no_home(session: SparkSession) -> None:
    assert session
    rules = topic_rules({"any": {"partitioner": "any"}, "loose": {"ordered": False}})
    counts = {"any-1": 3, "loose-1": 3, "points": 2}
    assert misplaced_keys.homed(counts, rules) == {"points": 2}
