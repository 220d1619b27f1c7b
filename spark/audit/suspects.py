"""The step of an audit that judges the suspects, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.checks.retention import ExpiredMessages, has_expired
from spark.compare import placement
from spark.compare.compaction import superseded
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.evidence import SUSPECTS_PER_CALL, look_up
from spark.compare.facts import Judgement, is_unverifiable
from spark.run_context import Run


def enter_suspects(run: Run, unsettled: DataFrame, judgement: Judgement) -> list[HalfId]:
    """Judge the suspects; return those that nothing can settle."""
    frames, ledger, suspects = run.frames, run.ledger, unsettled.where("suspect")
    gathered = placement.evidence(
        suspects, frames.records, frames.listings, _superseded(run, suspects)
    )
    expired, half_ids = ExpiredMessages(), list[HalfId]()
    for rows in chunks(gathered.toLocalIterator(prefetchPartitions=True)):
        found = look_up(rows, run.snapshot, run.context.log_reader)
        ledger.unverifiable += sum(is_unverifiable(each, judgement) for each in found)
        ledger.enter(f for each in found for f in findings_of_suspect(each, judgement))
        expired.note(found, judgement)
        half_ids += [each.half_id for each in found if has_expired(each, judgement)]
    ledger.enter(expired.findings(judgement))
    ledger.expired += expired.half_ids
    return half_ids


def chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield the rows, so many at a time as one look-up takes."""
    while chunk := list(islice(rows, SUSPECTS_PER_CALL)):
        yield chunk


def _superseded(run: Run, suspects: DataFrame) -> DataFrame | None:
    """Return the suspects that compaction explains; None without a compacted topic."""
    topics = sorted(run.plan.log.compacted_topics)
    if not topics:
        return None
    ends = F.min("half_id").alias("low"), F.max("half_id").alias("high")
    (row,) = run.frames.commits.agg(*ends).collect()
    if row["low"] is None:
        return None
    keyed = run.context.sources.read_keys(run.plan.snapshot, topics, (row["low"], row["high"]))
    return superseded(suspects, run.frames, keyed)
