"""The step of an audit that judges the suspects, a bounded number at a time."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.checks.retention import ExpiredMessages, recorded_partition
from spark.columns.segments import JUDGED
from spark.columns.staging import stage_frame
from spark.compare import placement
from spark.compare.bucket_checksums import Differences
from spark.compare.compaction import superseded
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.evidence import chunks, look_up
from spark.compare.facts import Judgement, is_unverifiable
from spark.compare.plain_losses import plain_losses
from spark.findings.ledger import KEPT
from spark.run_context import SparkRun

HIGHEST: Final = 2**63 - 1


def enter_suspects(run: SparkRun, found: Differences, judgement: Judgement) -> None:
    """Judge the suspects."""
    frames, ledger, suspects = run.frames, run.ledger, found.suspects
    if found.count > KEPT:
        losses = _enter_losses(run, suspects, judgement)
        suspects = suspects.join(losses.select("half_id"), "half_id", "left_anti")
    gathered = placement.evidence(
        suspects, frames.records, frames.listings, _superseded(run, suspects)
    )
    expired = ExpiredMessages()
    for rows in chunks(gathered.toLocalIterator(prefetchPartitions=True)):
        known = look_up(rows, run.snapshot, run.context.log_reader)
        ledger.unverifiable.update(
            recorded_partition(each) for each in known if is_unverifiable(each, judgement)
        )
        ledger.enter(f for each in known for f in findings_of_suspect(each, judgement))
        expired.note(known, judgement)
    ledger.enter(expired.findings(judgement))
    ledger.expired += expired.half_ids


def _enter_losses(run: SparkRun, suspects: DataFrame, judgement: Judgement) -> DataFrame:
    """Enter and return the plain losses, but for the first ones by id: those are looked up."""
    half_id, judged = "half_id", suspects.where(F.col("standing") == JUDGED)
    ends = (F.coalesce(F.min(half_id), F.lit(HIGHEST)), F.coalesce(F.max(half_id), F.lit(0)))
    low, high = judged.agg(*ends).collect()[0]
    kept = ~F.col("topic").isin(*run.plan.log.compacted_topics)
    stored = run.sources.read_stored(run.plan.snapshot, low, high).where(kept)
    accepted = run.ledger.accepted_ids
    found = plain_losses(judged, run.frames.listings, stored, judgement, accepted)
    losses = stage_frame(found, f"{run.frames.stage_uri}/losses")
    first = losses.select(half_id).orderBy(half_id).limit(KEPT)
    (last,) = first.agg(F.coalesce(F.max(half_id), F.lit(high))).collect()[0]
    later = losses.where(F.col(half_id) > last)
    run.ledger.enter_losses(later)
    return later


def _superseded(run: SparkRun, suspects: DataFrame) -> DataFrame | None:
    """Return the suspects that compaction explains; None without a compacted topic."""
    topics = sorted(run.plan.log.compacted_topics)
    if not topics:
        return None
    ends = F.min("half_id").alias("low"), F.max("half_id").alias("high")
    (row,) = run.frames.commits.agg(*ends).collect()
    if row["low"] is None:
        return None
    keyed = run.sources.read_keys(run.plan.snapshot, topics, (row["low"], row["high"]))
    return superseded(suspects, run.frames, keyed)
