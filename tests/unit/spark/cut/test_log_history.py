"""What has become of the log since the run before, from facts that are made up."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from outbox.messages.manifest import Position
from outbox.messages.message import DecidedBy
from outbox.reconciliation.log import WHOLE_TOPIC, LogRecord, Partition, TopicFacts
from outbox.reconciliation.snapshot import SnapshotIdentity
from spark.cut import log_history, log_state
from spark.cut.cut_plan import Range, ShardCut
from spark.cut.log_state import Anchor, Baseline, LogState
from tests.fixtures_records import render
from tests.unit.spark.fixtures_suspects import HALF

HERE = Partition("points", 0)
TOPICS = {"points": TopicFacts(id="first", partitions=1)}


def record_at(offset: int, value: bytes | None = None) -> LogRecord:
    """Return the record of a half message, found at some offset."""
    made = render(HALF, DecidedBy.CHECK, "3.1.0")
    content = made.value if value is None else value
    return LogRecord(
        partition=HERE, offset=offset, key=made.key, value=content, headers=made.headers
    )


AT_98 = record_at(98)
ANCHORED = LogState(
    topic_ids={"points": "first"},
    counts={"points": 1},
    ends={HERE: 100},
    anchors={HERE: Anchor(98, log_history.digest_of(AT_98))},
)


def changes_found(
    before: LogState = ANCHORED,
    *,
    start: int = 0,
    end: int = 120,
    topics: dict[str, TopicFacts] = TOPICS,
    there: LogRecord | None = AT_98,
) -> dict[str, Partition]:
    """Return the findings about a log, by cause."""
    ranges = [Range(partition=HERE, start=start, end=end)] if topics else []
    found = dict.fromkeys(log_history.anchors_to_read(before, ranges), there)
    gaps = log_history.unreadable_ranges(before, topics, ["points"], ranges)
    read = [each for each in ranges if each.partition not in {gap.partition for gap in gaps}]
    every = [*gaps, *log_history.changes(before, topics, read, found)]
    return {each.cause: each.partition for each in every}


def test_a_log_that_has_only_grown_has_no_finding() -> None:
    assert changes_found() == {}
    assert changes_found(end=100) == {}
    assert changes_found(start=100) == {}


@pytest.mark.parametrize(("start", "expected"), [(100, {}), (101, {"UNVERIFIABLE/expired": HERE})])
def test_a_log_that_begins_after_the_last_end_has_a_gap(
    start: int, expected: dict[str, Partition]
) -> None:
    assert changes_found(start=start) == expected


def test_a_log_that_ends_before_the_last_end_was_cut_off() -> None:
    assert changes_found(end=99) == {"LOG_CHANGED/truncated": HERE}


def test_a_truncated_log_that_has_grown_again_is_recognized_by_its_anchor() -> None:
    assert changes_found(there=record_at(98, b"another one")) == {"LOG_CHANGED/truncated": HERE}
    assert changes_found(there=record_at(104)) == {"LOG_CHANGED/truncated": HERE}
    assert changes_found(there=None) == {"LOG_CHANGED/truncated": HERE}


def test_an_anchor_removed_by_compaction_proves_nothing_unless_another_record_is_there() -> None:
    compacted = {"points": replace(TOPICS["points"], compacts=True)}
    assert changes_found(topics=compacted, there=record_at(104)) == {}
    assert changes_found(topics=compacted, there=record_at(98, b"!")) == {
        "LOG_CHANGED/truncated": HERE
    }


def test_an_anchor_that_expired_or_did_not_answer_proves_nothing() -> None:
    assert changes_found(start=99, there=record_at(104)) == {}
    ranges = [Range(partition=HERE, start=0, end=120)]
    assert log_history.changes(ANCHORED, TOPICS, ranges, {}) == ()


WHOLE = Partition("points", WHOLE_TOPIC)


def test_a_deleted_topic_was_not_read() -> None:
    assert changes_found(topics={}) == {"UNVERIFIABLE/not_read": HERE}


def test_a_topic_that_we_may_not_describe_was_not_read() -> None:
    gaps = log_history.unreadable_ranges(LogState(), {"points": "refused"}, ["points"], [])
    assert [(each.partition, each.reason) for each in gaps] == [(WHOLE, "refused")]


def test_a_topic_that_is_no_longer_wanted_is_not_missed() -> None:
    assert log_history.unreadable_ranges(ANCHORED, {}, [], []) == ()


def test_a_stored_state_is_read_back_unchanged() -> None:
    baselines = {"points": {3: Baseline(Position(9, 2), batch_no=5)}}
    state = replace(ANCHORED, baselines=baselines, positions={3: Position(9, 4)})
    stored = json.loads(json.dumps(state.as_json()))
    assert log_state.state_of(stored) == state


def snapshot_of(taken_at: datetime) -> SnapshotIdentity:
    """Return a snapshot of this time."""
    return SnapshotIdentity(exported_id="1", visible="9:9:", taken_at=taken_at)


def test_all_partitions_are_known_to_every_relay_a_while_after_a_run_has_counted_them() -> None:
    shards = [ShardCut(shard=3, batch_no=7, position=Position(9, 1))]
    noon, age = datetime(2026, 1, 1, tzinfo=UTC), log_history.METADATA_AGE
    counted, known = {"points": 2, "new": 1}, []
    state = LogState()
    for minutes, partitions in enumerate((2, 2, 2, 2, 3, 3, 3)):
        left = replace(state, counts={"points": partitions})
        at = noon + minutes * age / 2
        state = replace(
            left, counted=log_history.counted_after_run(state, left, shards, snapshot_of(at))
        )
        state = log_state.state_of(json.loads(json.dumps(state.as_json())))
        counted["points"] = partitions
        known.append(state.all_known_after(counted).get("points", {}).get(3))
        shards = [replace(each, batch_no=each.batch_no + 1) for each in shards]
    assert known == [None, None, 9, 9, None, None, 13]
    assert state.all_known_after({"points": 3})["points"][4] == 0
    assert state.all_known_after({"points": 4}) == {}
    assert state.without({"points"}).counted == {}


@pytest.mark.parametrize(
    ("end", "anchors", "expected"),
    [
        (120, {}, {HERE: ANCHORED.anchors[HERE]}),
        (120, {HERE: Anchor(98, 5)}, {HERE: Anchor(98, 5)}),
        (120, {HERE: Anchor(20, 5)}, {HERE: ANCHORED.anchors[HERE]}),
        (90, {HERE: Anchor(88, 5)}, {HERE: Anchor(88, 5)}),
        (90, {}, {}),
    ],
)
def test_the_newest_anchor_that_the_log_still_holds_is_kept(
    end: int, anchors: dict[Partition, Anchor], expected: dict[Partition, Anchor]
) -> None:
    ranges = [Range(partition=HERE, start=0, end=end)]
    assert log_history.next_state(ANCHORED, TOPICS, ranges, anchors, {}).anchors == expected
