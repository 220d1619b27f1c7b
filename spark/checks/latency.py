"""Measures publish latency on a sample: from the commit to the time of the record.

It serves the report and the latency classes; no other verdict needs it. The commit's
time is PostgreSQL's, the record's time is the relay's or the broker's. So clocks that differ are
visible here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.columns import schemas
from spark.columns.collected_times import utc_text
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause
from spark.findings.topic_rules import LatencyTarget

SAMPLE: Final = 200_000
"""Number of messages in the sample, about; they are chosen by their digests."""
SHARES: Final = (0.5, 0.95, 0.99)
SKEW_MICROS: Final = 1_000_000
"""A record has a skewed time if it is before its commit, or after the cut, by more than this."""
SKEWED_SHARE: Final = 0.001
"""Above this share of skewed records in a topic there is a finding."""


def one_in(messages: int) -> int:
    """Return n, where one of n messages belongs to the sample."""
    return max(1, messages // SAMPLE)


def is_sampled(one_of: int, turn: int = 0) -> Column:
    """Whether a message belongs to the sample; its digest decides, each ``turn`` another way."""
    return F.pmod(F.col("digest"), F.lit(one_of)) == turn % one_of


def sample_times(commits: DataFrame, records: DataFrame, one_of: int) -> DataFrame:
    """Return the sample's records with the commit time of their content."""
    committed = commits.where(is_sampled(one_of)).select("digest", "committed_at")
    published = records.where(is_sampled(one_of)).select(
        "digest", "topic", "partition", "offset", "published_at"
    )
    return committed.join(published, "digest")


def latencies(timed: DataFrame) -> DataFrame:
    """Return the percentiles of each topic in seconds."""
    shares = F.percentile_approx("micros", list(SHARES)).alias("at")
    summed = _durations(timed).groupBy("topic").agg(F.count("*").alias("messages"), shares)
    seconds = [
        (F.col("at")[place] / 1e6).alias(name) for place, name in enumerate(("p50", "p95", "p99"))
    ]
    return summed.select("topic", "messages", *seconds).orderBy("topic")


def slow_topics(timed: DataFrame, targets: Mapping[str, LatencyTarget]) -> DataFrame:
    """Return the topics whose p99 was above their target for at least the allowed minutes."""
    rows = [
        {"topic": topic, "target": each.p99_seconds, "allowed": each.minutes}
        for topic, each in targets.items()
    ]
    wanted = schemas.frame_of(timed.sparkSession, rows, schemas.LATENCY_TARGETS)
    p99 = (F.percentile_approx("micros", 0.99) / 1e6).alias("p99")
    by_minute = _durations(timed).groupBy("topic", "minute").agg(p99)
    over = by_minute.join(F.broadcast(wanted), "topic").where("p99 > target")
    worst = (F.max("p99").alias("worst"), F.max_by("minute", "p99").alias("worst_minute"))
    ends = (F.min("minute").alias("first_minute"), F.max("minute").alias("last_minute"))
    counted = over.groupBy("topic", "target", "allowed").agg(
        F.count("*").alias("minutes"), *ends, *worst
    )
    return counted.where("minutes >= allowed").orderBy("topic")


def slow_finding(row: Any) -> Finding:
    """Return the finding of a topic that was too slow for too long."""
    return Finding(
        cause=Cause.LATENCY_SLOW,
        subject=f"topic:{row['topic']}",
        topic=row["topic"],
        evidence={
            "target_p99_seconds": row["target"],
            "minutes_above": row["minutes"],
            "first_minute": utc_text(row["first_minute"]),
            "last_minute": utc_text(row["last_minute"]),
            "worst_minute": utc_text(row["worst_minute"]),
            "worst_p99_seconds": row["worst"],
        },
    )


def is_skewed(cut_at: datetime) -> Column:
    """Whether a record has an impossible time.

    It was published after its commit and before the snapshot of the cut was taken.
    """
    early, late = _distances(cut_at)
    return (early < -SKEW_MICROS) | (late > SKEW_MICROS)


def skewed_topics(timed: DataFrame, cut_at: datetime) -> DataFrame:
    """Return the topics with too many records of an impossible time."""
    early, late = _distances(cut_at)
    offsets = timed.withColumns({"early": early, "late": late})
    before, after = F.col("early") < -SKEW_MICROS, F.col("late") > SKEW_MICROS
    worst = F.struct("topic", "partition", "offset")
    counted = offsets.groupBy("topic").agg(
        F.count("*").alias("sampled"),
        F.count(F.when(before, True)).alias("before_commit"),
        F.count(F.when(after, True)).alias("after_cut"),
        F.min_by(worst, F.when(before | after, F.col("early"))).alias("worst"),
        F.percentile_approx("early", [0.001, *SHARES, 0.999]).alias("at"),
    )
    off = F.col("before_commit") + F.col("after_cut")
    return counted.where(off > F.col("sampled") * SKEWED_SHARE).orderBy("topic")


def skew_finding(row: Any, stamped_by: str | None) -> Finding:
    """Return the finding of a topic whose records have impossible times."""
    names = ("p0.1", "p50", "p95", "p99", "p99.9")
    seconds = {name: micros / 1e6 for name, micros in zip(names, row["at"], strict=True)}
    return Finding(
        cause=Cause.LATENCY_CLOCK_SKEW,
        subject=f"clocks:{row['topic']}",
        topic=row["topic"],
        partition=row["worst"]["partition"],
        offset=row["worst"]["offset"],
        evidence={
            "sampled": row["sampled"],
            "before_commit": row["before_commit"],
            "after_cut": row["after_cut"],
            "seconds_after_commit": seconds,
            "timestamp_type": stamped_by,
        },
    )


def _distances(cut_at: datetime) -> tuple[Column, Column]:
    """Return how long after its commit, and after the cut, a record was published."""
    published = F.unix_micros("published_at")
    return published - F.unix_micros("committed_at"), published - F.unix_micros(F.lit(cut_at))


def _durations(timed: DataFrame) -> DataFrame:
    micros = F.unix_micros("published_at") - F.unix_micros("committed_at")
    return timed.select(
        "topic",
        F.date_trunc("minute", "committed_at").alias("minute"),
        F.greatest(micros, F.lit(0)).alias("micros"),
    )
