"""The compare step alone, without servers: both sides are generated, staged and clean.

The staged files have the columns of a run. Then the comparison of a run and a full join on the id
read the same files in turn, both warm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.machine import report
from outbox.messages.message_id import SHARD_BITS, SHARDS
from spark.columns import commit_rank, schemas, segments
from spark.columns.frames import Frames, Mode
from spark.columns.staging import stage_frame
from spark.compare import bucket_checksums
from spark.cut.reader import place_records
from spark.jvm.session import QUICK_RECORDS, RUNTIME_JARS, SessionSettings, spark_session

FLUSH: Final = 125
"""Number of ids of one shard in a row of the commit log."""
BATCH: Final = 2000
"""Number of records of one shard in a batch of the relay."""
FAR: Final = 1 << 40
"""A position after all others."""
GATE: Final = 5.0
WARM: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The staged data of a run: rows of the commit log, and records."""

    commits: DataFrame
    records: DataFrame
    batches: DataFrame
    uri: str
    messages: int


def compare_alone(sizes: Sequence[int]) -> None:
    """Compare each number of clean messages with both methods; report both and their ratio."""
    with TemporaryDirectory(prefix="outbox-bench-") as folder:
        settings = SessionSettings(
            master="local[2]",
            jars_dir=RUNTIME_JARS,
            log_file=Path(folder) / "spark.log",
            expected_records=QUICK_RECORDS,
        )
        with spark_session(settings) as session:
            for messages in sizes:
                _compare(_stage(session, messages, Path(folder).as_uri()), messages)


def _compare(stage: Stage, messages: int) -> None:
    ours = _cost("ours", lambda: _ours(stage), messages)
    joined = _cost("full join", lambda: _joined(stage), messages)
    ratio = round(joined / ours, 2)
    report("compare gate", messages=messages, join_to_ours=ratio, at_least=GATE, kept=ratio >= GATE)


def _ours(stage: Stage) -> int:
    """Compare as a run does; the cut is at the end, so each message is judged."""
    session = stage.commits.sparkSession
    end = {"cut_batch": FAR, "cut_xid": FAR, "cut_n": 0, "base_xid": 0, "base_n": 0}
    cuts = schemas.frame_of(
        session, [{"shard": n, **end} for n in range(SHARDS)], schemas.SHARD_CUTS
    )
    flushes = commit_rank.flushes(stage.commits)
    cut_up = stage_frame(segments.segments(flushes, stage.batches, cuts), f"{stage.uri}/stretches")
    frames = Frames(
        manifests=stage.batches,
        listings=stage.batches,
        segments=cut_up,
        batches=stage.batches,
        commits=segments.open_commits(stage.commits, cut_up).withColumn("carried", F.lit(False)),
        records=place_records(stage.records.withColumn("carried", F.lit(False)), cuts),
        size=stage.messages,
    )
    odd = bucket_checksums.mismatches(frames, Mode.TWO_LEVEL, stage.uri)
    return bucket_checksums.open_ids(frames.commits, frames.records, odd).count()


def _joined(stage: Stage) -> int:
    pairs = F.explode(F.arrays_zip("half_ids", "content_digests")).alias("pair")
    commits = stage.commits.select(pairs).select(
        F.col("pair.half_ids").alias("half_id"), F.col("pair.content_digests").alias("committed")
    )
    both = commits.join(stage.records.select("half_id", "digest"), "half_id", "full_outer")
    return both.where(~F.col("committed").eqNullSafe(F.col("digest"))).count()


def _cost(way: str, ask: Callable[[], int], messages: int) -> float:
    """Repeat until warm; return the CPU seconds of the last repetition."""
    cpu = 0.0
    for number in range(WARM + 1):
        with Meter({}).measured() as cost:
            differ = ask()
        cpu = cost.cpu
        name = f"warm {number}" if number else "first"
        report("compare", way=way, run=name, differ=differ, **cost.figures(messages))
    return cpu


def _stage(session: SparkSession, messages: int, folder: str) -> Stage:
    """Stage both sides of so many messages, published in order and without a fault."""
    rows = messages // FLUSH // SHARDS * SHARDS
    commits = session.range(rows).select(
        _shard().cast("int").alias("shard"),
        F.lit(FLUSH).cast("bigint").alias("size"),
        (F.floor(F.col("id") / SHARDS) + 1).alias("xid"),
        F.timestamp_seconds(F.col("id") / SHARDS).alias("committed_at"),
        _ids().alias("half_ids"),
    )
    digests = F.transform("half_ids", lambda half_id: F.xxhash64(half_id)).alias("content_digests")
    records = session.range(rows * FLUSH).select(*_record_columns())
    return Stage(
        commits=stage_frame(commits.select("*", digests), f"{folder}/commits-{messages}"),
        records=stage_frame(records, f"{folder}/records-{messages}"),
        batches=stage_frame(_batches(session, rows * FLUSH), f"{folder}/batches-{messages}"),
        uri=folder,
        messages=rows * FLUSH,
    )


def _record_columns() -> list[Column]:
    """Return the columns of ``Sources.read_records``; those that no comparison reads are empty."""
    place = F.floor(F.col("id") / SHARDS)
    half_id = F.shiftleft(place, SHARD_BITS).bitwiseOR(_shard())
    return [
        F.lit("bench").alias("topic"),
        (F.col("id") % 6).cast("int").alias("partition"),
        F.floor(F.col("id") / 6).alias("offset"),
        F.timestamp_seconds(F.col("id") / SHARDS / FLUSH).alias("published_at"),
        F.lit(None).cast("string").alias("message_id"),
        half_id.alias("half_id"),
        _shard().cast("int").alias("shard"),
        (F.floor(place / BATCH) + 1).alias("batch_no"),
        (place % BATCH).cast("int").alias("index"),
        F.lit(False).alias("redriven"),
        F.xxhash64(half_id).alias("digest"),
        F.lit(None).cast("bigint").alias("key_hash"),
    ]


def _batches(session: SparkSession, messages: int) -> DataFrame:
    """Return the batches of these messages, as the manifests list them."""
    count = -(-messages // SHARDS // BATCH) * SHARDS
    begins = F.floor(F.col("id") / SHARDS) * BATCH
    return session.range(count).select(
        _shard().cast("int").alias("shard"),
        (F.floor(F.col("id") / SHARDS) + 1).alias("batch_no"),
        begins.alias("from_rank"),
        (begins + BATCH).alias("to_rank"),
        *(F.lit(True).alias(name) for name in ("in_turn", "whole")),
    )


def _ids() -> Column:
    """Return the ids of one row of the commit log: the next ones of its shard."""
    first = F.floor(F.col("id") / SHARDS) * FLUSH
    places = F.sequence(first, first + FLUSH - 1)
    return F.transform(places, lambda place: F.shiftleft(place, SHARD_BITS).bitwiseOR(_shard()))


def _shard() -> Column:
    return F.col("id") % SHARDS
