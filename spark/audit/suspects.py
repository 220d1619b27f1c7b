"""The step of an audit that judges the suspects, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.audit.step_values import Compared, Read
from spark.checks.retention import ExpiredMessages, has_expired
from spark.compare import placement
from spark.compare.compaction import superseded
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.evidence import SUSPECTS_PER_CALL, look_up
from spark.compare.facts import Judgement, is_unverifiable
from spark.findings.ledger import Ledger


def enter_suspects(compared: Compared, judgement: Judgement, ledger: Ledger) -> list[HalfId]:
    """Judge the suspects; return those that nothing can settle."""
    read, suspects = compared.read, compared.unsettled.where("suspect")
    gathered = placement.evidence(
        suspects, read.frames.records, read.frames.listings, _superseded(read, suspects)
    )
    expired, half_ids = ExpiredMessages(), list[HalfId]()
    for rows in chunks(gathered.toLocalIterator(prefetchPartitions=True)):
        found = look_up(rows, read.snapshot, read.captured.context.log_reader)
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


def _superseded(read: Read, suspects: DataFrame) -> DataFrame | None:
    """Return the suspects that compaction explains; None without a compacted topic."""
    topics = sorted(read.plan.log.compacted_topics)
    if not topics:
        return None
    ends = F.min("half_id").alias("low"), F.max("half_id").alias("high")
    (row,) = read.frames.commits.agg(*ends).collect()
    if row["low"] is None:
        return None
    sources = read.captured.context.sources
    keyed = sources.read_keys(read.plan.snapshot, topics, (row["low"], row["high"]))
    return superseded(suspects, read.frames, keyed)
