"""What expired before it was judged is reported, and such a run is not clean."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from outbox.messages.manifest import Position
from outbox.reconciliation.log import Partition
from spark.checks.coverage import gap_finding
from spark.checks.retention import (
    ExpiredMessages,
    retired_findings,
)
from spark.cut.cut_plan import Gap, ShardCut
from spark.cut.log_state import LogState
from spark.findings.finding_class import Cause
from spark.findings.verdict import Verdict, verdict_of
from tests.unit.spark.fixtures_suspects import (
    HERE,
    NOON,
    causes,
    make_copy,
    make_suspect,
    placed_at,
)

FROM_SIX = replace(HERE, starts={Partition("points", 0): 6, Partition("points", 1): 0})


def cut(shard: int) -> ShardCut:
    """Return the cut of a shard of which all manifests are kept."""
    return ShardCut(shard=shard, batch_no=9, position=Position(9, 9))


def test_messages_below_the_start_of_the_log_are_one_finding_a_partition() -> None:
    expired = ExpiredMessages()
    later = NOON + timedelta(minutes=3)
    suspects = [make_suspect(place=placed_at(5)), make_suspect(place=placed_at(2))]
    expired.note([suspects[0], replace(suspects[1], committed_at=later)], FROM_SIX)
    (finding,) = expired.findings(FROM_SIX)
    assert (finding.cause, finding.topic, finding.partition) == (
        Cause.UNVERIFIABLE_EXPIRED,
        "points",
        0,
    )
    assert finding.evidence == {
        "messages": 2,
        "log_start": 6,
        "first_committed_at": NOON.isoformat(),
        "last_committed_at": later.isoformat(),
    }
    assert expired.half_ids == [each.half_id for each in suspects]
    assert verdict_of({finding.graded}) is Verdict.INCONCLUSIVE


def test_a_reported_gap_is_not_reported_again() -> None:
    expired = ExpiredMessages()
    reported = replace(FROM_SIX, expired_topics=frozenset({"points"}))
    expired.note([make_suspect(place=placed_at(5)), make_suspect()], reported)
    assert list(expired.findings(reported)) == []
    assert causes(make_suspect(place=placed_at(6)), reported) == [Cause.LOST_PUBLISHED]


def test_a_message_without_a_recorded_place_is_counted_by_topic() -> None:
    expired = ExpiredMessages()
    expired.note([make_suspect()], FROM_SIX)
    (finding,) = expired.findings(FROM_SIX)
    assert (finding.topic, finding.partition) == ("points", None)


def test_each_gap_is_a_finding_of_its_own_so_that_accepting_one_accepts_no_later_one() -> None:
    ids = set()
    for minutes in (0, 3):
        expired = ExpiredMessages()
        at = NOON + timedelta(minutes=minutes)
        expired.note([make_suspect(place=placed_at(5), committed_at=at)], FROM_SIX)
        ids |= {each.finding_id for each in expired.findings(FROM_SIX)}
    before = LogState(positions={3: Position(7, 3)})
    for end in (Position(7, 4), Position(8, 1)):
        ids |= {each.finding_id for each in retired_findings(before, {3: end}, [cut(3)], 1)}
    here = Partition("points", 0)
    for name in ("UNVERIFIABLE/expired", "LOG_CHANGED/truncated"):
        gaps = [Gap(cause=name, partition=here, reason=why) for why in ("a", "b")]
        ids |= {gap_finding(each).finding_id for each in gaps}
    assert len(ids) == 8


def test_a_message_whose_record_must_still_be_there_is_lost_and_not_expired() -> None:
    expired = ExpiredMessages()
    suspects = [make_suspect(place=placed_at(6)), make_suspect(place=placed_at(0, partition=1))]
    expired.note(suspects, FROM_SIX)
    assert list(expired.findings(FROM_SIX)) == []
    assert [causes(each, FROM_SIX) for each in suspects] == [[Cause.LOST_PUBLISHED]] * 2


@pytest.mark.parametrize(
    ("end", "shards"), [(Position(7, 3), []), (Position(7, 4), [3]), (Position(8, 1), [3])]
)
def test_a_batch_retired_after_the_read_position_is_a_finding_of_its_shard(
    end: Position, shards: list[int]
) -> None:
    before = LogState(positions={3: Position(7, 3)})
    found = list(retired_findings(before, {3: end, 4: Position(9, 9)}, [cut(3), cut(4)], 1))
    assert [each.shard for each in found] == shards
    assert {each.cause for each in found} <= {Cause.UNVERIFIABLE_EXPIRED}


def test_neither_a_record_that_is_there_nor_a_topic_that_was_not_read_is_expired() -> None:
    expired = ExpiredMessages()
    expired.note([make_suspect(make_copy(), make_copy(), place=placed_at(1))], FROM_SIX)
    unread = replace(FROM_SIX, unread_topics=frozenset({"points"}))
    expired.note([make_suspect(place=placed_at(1))], unread)
    assert (list(expired.findings(FROM_SIX)), expired.half_ids) == ([], [])
