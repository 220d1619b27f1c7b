"""Finds messages that were decided COMMIT and that the commit log does not have.

The relay reads only the commit log, so it never publishes them, and no record, no manifest and no
commit shows that they exist. Only their decision does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame

from outbox.messages.message import Resolution
from outbox.messages.message_id import HalfId
from spark.checks.half_ids import half_ids_in
from spark.cut.checkpoint import Previous
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

LOOK_BACK: Final = timedelta(hours=1)
"""A run that continues another one looks at what was prepared this long before its cut: longer than
a message is undecided, but for the few that wait for their checks. A full read looks at all."""
NO_ROW: Final = "has no row of the message, so the relay never reads it"


def looked_back(previous: Previous | None) -> tuple[datetime, int] | tuple[()]:
    """Return the time and the transaction id between which a run looks; none looks at all."""
    return () if previous is None else (previous.cut_at - LOOK_BACK, previous.horizon)


def unlogged(
    snapshot: PostgresSnapshot, previous: Previous | None, missing: Sequence[HalfId]
) -> list[HalfId]:
    """Return these messages, in order.

    ``previous`` is the cut that the run continues. Those that are ``missing`` since an earlier run
    are looked at again.
    """
    return sorted(snapshot.unlogged(*looked_back(previous)) | snapshot.unlogged_among(missing))


def findings(
    found: Sequence[HalfId],
    snapshot: PostgresSnapshot,
    records: DataFrame,
    unread_topics: Collection[str],
) -> Iterator[Finding]:
    """Yield a finding for each of them that is in no topic; they are lost."""
    holds, halves = snapshot.held_records(found), snapshot.halves(found)
    settled = {i for i, hold in holds.items() if hold.repaired and hold.released}
    settled |= {i for i, known in halves.items() if known.half.message.topic in unread_topics}
    settled |= half_ids_in(records, found)
    for half_id in found:
        if half_id not in settled:
            known = halves.get(half_id)
            yield Finding.about_message(
                Cause.LOST_SKIPPED,
                half_id,
                known,
                decision=Resolution.COMMIT,
                expected_digest=known.half.content_digest if known else None,
                evidence={"commit_log": NO_ROW},
            )
