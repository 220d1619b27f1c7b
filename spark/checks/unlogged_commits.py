"""Finds messages that were decided COMMIT and that the commit log does not have.

The relay reads only the commit log, so it never publishes them, and no record, no manifest and no
commit shows that they exist. Only their decision does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame

from outbox.messages.message_id import HalfId, shard_in
from outbox.reconciliation.snapshot import KnownHalf
from spark.columns import schemas
from spark.compare.decision_table import Decision
from spark.cut.checkpoint import Previous
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

LOOK_BACK: Final = timedelta(hours=1)
"""A run that continues another one looks at what was prepared this long before its cut: longer than
a message is undecided, but for the few that wait for their checks. A full read looks at all."""
NO_ROW: Final = "has no row of the message, so the relay never reads it"


def unlogged(
    snapshot: PostgresSnapshot, previous: Previous | None, missing: Sequence[HalfId]
) -> list[HalfId]:
    """Return these messages, in order.

    ``previous`` is the cut that the run continues; None looks at all messages. Those that are
    ``missing`` since an earlier run are looked at again.
    """
    since = () if previous is None else (previous.cut_at - LOOK_BACK, previous.horizon)
    return sorted(snapshot.unlogged(*since) | snapshot.unlogged_among(missing))


def findings(
    found: Sequence[HalfId],
    snapshot: PostgresSnapshot,
    records: DataFrame,
    unread_topics: Collection[str],
) -> tuple[Finding, ...]:
    """Return a finding for each of them that is in no topic; they are lost."""
    if not found:
        return ()
    holds, halves = snapshot.held_records(found), snapshot.halves(found)
    settled = {i for i, hold in holds.items() if hold.repaired and hold.released}
    settled |= {i for i, known in halves.items() if _topic(known) in unread_topics}
    settled |= _recorded(found, records)
    return tuple(_finding(i, halves) for i in found if i not in settled)


def _recorded(half_ids: Sequence[HalfId], records: DataFrame) -> set[HalfId]:
    """Return the messages that have a record; what is wrong with it others find."""
    rows = [{"half_id": each} for each in half_ids]
    asked = schemas.frame_of(records.sparkSession, rows, schemas.HALF_IDS)
    there = asked.join(records.select("half_id"), "half_id", "left_semi").collect()
    return {HalfId(row["half_id"]) for row in there}


def _finding(half_id: HalfId, halves: Mapping[HalfId, KnownHalf]) -> Finding:
    known = halves.get(half_id)
    message_id = str(known.half.message_id) if known else str(half_id)
    return Finding(
        cause=Cause.LOST_SKIPPED,
        subject=f"message:{message_id}",
        half_id=half_id,
        message_id=message_id if known else None,
        topic=_topic(known) if known else None,
        key=known.half.message.key if known else None,
        producer_group=known.half.message.producer_group if known else None,
        shard=shard_in(half_id),
        decision=Decision.COMMIT.value,
        decided_at=known.decided_at if known else None,
        expected_digest=known.half.content_digest if known else None,
        evidence={"commit_log": NO_ROW},
    )


def _topic(known: KnownHalf) -> str:
    return known.half.message.topic
