"""How long publishing took, on a sample: from the commit to the record's own time.

For people, charts, and the classes of latency; no other verdict needs it. The commit's time is
PostgreSQL's, the record's is the relay's or the broker's, so clocks that differ show here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.columns import schemas
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from spark.findings.topic_rules import LatencyTarget

SAMPLE: Final = 200_000
"""About so many messages are looked at, by their digests."""
SHARES: Final = (0.5, 0.95, 0.99)
SKEW_MICROS: Final = 1_000_000
"""A record of a time before its commit, or after the cut, by more than this: a clock is off."""
SKEWED_SHARE: Final = 0.001
"""So large a part of a topic's records may be so before it is a finding."""


def one_in(messages: int) -> int:
    """Return which share of so many messages makes the sample: one in how many."""
    return max(1, messages // SAMPLE)


def sampled(one_of: int) -> Column:
    """Tell whether a message is of the sample, by its content."""
    return F.pmod(F.col("digest"), F.lit(one_of)) == 0


def timed(commits: DataFrame, records: DataFrame, one_of: int) -> DataFrame:
    """Return the sample's records beside the time of the commit of their content."""
    committed = commits.where(sampled(one_of)).select("digest", "committed_at")
    published = records.where(sampled(one_of)).select(
        "digest", "topic", "partition", "offset", "published_at"
    )
    return committed.join(published, "digest")


def latencies(timed: DataFrame) -> DataFrame:
    """Return percentiles in seconds: rows of minutes without a topic, and of topics without one."""
    shares = F.percentile_approx("micros", list(SHARES)).alias("at")
    sets = [[F.col("minute")], [F.col("topic")]]
    summed = (
        _took(timed)
        .groupingSets(sets, "minute", "topic")
        .agg(F.count("*").alias("messages"), shares)
    )
    seconds = [
        (F.col("at")[place] / 1e6).alias(name) for place, name in enumerate(("p50", "p95", "p99"))
    ]
    return summed.select("minute", "topic", "messages", *seconds)


def slow(timed: DataFrame, targets: Mapping[str, LatencyTarget]) -> DataFrame:
    """Return the topics whose p99 lay above their target for as many minutes as it says."""
    rows = [
        {"topic": topic, "target": each.p99_seconds, "allowed": each.minutes}
        for topic, each in targets.items()
    ]
    wanted = schemas.frame_of(timed.sparkSession, rows, schemas.LATENCY_TARGETS)
    p99 = (F.percentile_approx("micros", 0.99) / 1e6).alias("p99")
    by_minute = _took(timed).groupBy("topic", "minute").agg(p99)
    over = by_minute.join(F.broadcast(wanted), "topic").where("p99 > target")
    worst = (F.max("p99").alias("worst"), F.max_by("minute", "p99").alias("worst_minute"))
    ends = (F.min("minute").alias("first_minute"), F.max("minute").alias("last_minute"))
    counted = over.groupBy("topic", "target", "allowed").agg(
        F.count("*").alias("minutes"), *ends, *worst
    )
    return counted.where("minutes >= allowed").orderBy("topic")


def of_slow(row: Any) -> Finding:
    """Return the finding of a topic that was too slow for too long."""
    return Finding(
        finding_class=FindingClass.LATENCY_SLO,
        subject=f"topic:{row['topic']}",
        topic=row["topic"],
        detail={
            "target_p99_seconds": row["target"],
            "minutes_above": row["minutes"],
            "first_minute": row["first_minute"].isoformat(),
            "last_minute": row["last_minute"].isoformat(),
            "worst_minute": row["worst_minute"].isoformat(),
            "worst_p99_seconds": row["worst"],
        },
    )


def skews(timed: DataFrame, cut_at: datetime) -> DataFrame:
    """Return the topics of which too many records bear a time that cannot be.

    Each was published after its commit and before the snapshot of the cut was taken.
    """
    early = F.unix_micros("published_at") - F.unix_micros("committed_at")
    late = F.unix_micros("published_at") - F.unix_micros(F.lit(cut_at))
    told = timed.withColumns({"early": early, "late": late})
    before, after = F.col("early") < -SKEW_MICROS, F.col("late") > SKEW_MICROS
    worst = F.struct("topic", "partition", "offset")
    counted = told.groupBy("topic").agg(
        F.count("*").alias("sampled"),
        F.count(F.when(before, True)).alias("before_commit"),
        F.count(F.when(after, True)).alias("after_cut"),
        F.min_by(worst, F.when(before | after, F.col("early"))).alias("worst"),
        F.percentile_approx("early", [0.001, *SHARES, 0.999]).alias("at"),
    )
    off = F.col("before_commit") + F.col("after_cut")
    return counted.where(off > F.col("sampled") * SKEWED_SHARE).orderBy("topic")


def of_skew(row: Any, stamped_by: str | None) -> Finding:
    """Return the finding of a topic whose records bear times that cannot be."""
    names = ("p0.1", "p50", "p95", "p99", "p99.9")
    seconds = {name: micros / 1e6 for name, micros in zip(names, row["at"], strict=True)}
    return Finding(
        finding_class=FindingClass.CLOCK_SKEW,
        subject=f"clocks:{row['topic']}",
        topic=row["topic"],
        partition=row["worst"]["partition"],
        offset=row["worst"]["offset"],
        detail={
            "sampled": row["sampled"],
            "before_commit": row["before_commit"],
            "after_cut": row["after_cut"],
            "seconds_after_commit": seconds,
            "timestamp_type": stamped_by,
        },
    )


def _took(timed: DataFrame) -> DataFrame:
    took = F.unix_micros("published_at") - F.unix_micros("committed_at")
    return timed.select(
        "topic",
        F.date_trunc("minute", "committed_at").alias("minute"),
        F.greatest(took, F.lit(0)).alias("micros"),
    )
