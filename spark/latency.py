"""How long publishing took, on a sample: from the commit to the record's own time.

For people and charts; no verdict needs it. The commit's time is PostgreSQL's, the record's is the
producer's or the broker's, so clocks that differ show here.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

SAMPLE: Final = 200_000
"""About so many messages are looked at, by a hash of their ids."""
SHARES: Final = (0.5, 0.95, 0.99)


def one_in(messages: int) -> int:
    """Return which share of so many messages makes the sample: one in how many."""
    return max(1, messages // SAMPLE)


def latencies(commits: DataFrame, records: DataFrame, one_of: int) -> DataFrame:
    """Return percentiles in seconds: rows of minutes without a topic, and of topics without one."""
    committed = commits.where(_sampled(one_of)).select("half_id", "committed_at")
    published = records.where(_sampled(one_of)).select("half_id", "topic", "published_at")
    took = F.unix_micros("published_at") - F.unix_micros("committed_at")
    pairs = committed.join(published, "half_id").select(
        "topic",
        F.date_trunc("minute", "committed_at").alias("minute"),
        F.greatest(took, F.lit(0)).alias("micros"),
    )
    shares = F.percentile_approx("micros", list(SHARES)).alias("at")
    sets = [[F.col("minute")], [F.col("topic")]]
    summed = pairs.groupingSets(sets, "minute", "topic").agg(F.count("*").alias("messages"), shares)
    seconds = [
        (F.col("at")[place] / 1e6).alias(name) for place, name in enumerate(("p50", "p95", "p99"))
    ]
    return summed.select("minute", "topic", "messages", *seconds)


def _sampled(one_of: int) -> Column:
    return F.pmod(F.xxhash64("half_id"), F.lit(one_of)) == 0
