"""Checks of the matches of commits with records: order, keys, places and clocks.

Cheap passes over all matches come first. What they flag is examined in detail, a few rows at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.reconciliation.log import Partition
from spark.checks import keys, latency, misplaced_keys, order, sample
from spark.columns.staging import stage_counted
from spark.compare import matches
from spark.compare.bucket_checksums import Mismatch
from spark.compare.matches import Matches
from spark.cut.log_state import LogState
from spark.findings.finding import Finding
from spark.findings.topic_rules import latency_targets
from spark.run_context import SparkRun


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchChecks:
    """The matches of a run."""

    matches: Matches
    known: DataFrame
    """The plain matches with ``all_known``: whether the relay knew all partitions by then."""
    timed: DataFrame
    """A sample of the newly read records with the times of their commits."""
    skewed: int
    """Number of its records with an impossible time."""


def collect(run: SparkRun, mismatch: Mismatch | None) -> MatchChecks:
    """Match the judged commits with their records, and prepare the frames of the checks."""
    plan, frames = run.plan, run.frames
    uri, counts = frames.stage_uri, plan.log.partition_counts
    found = matches.matches_of(frames, mismatch, uri)
    before = plan.log.before or LogState()
    places = keys.first_known_places(found.plain, counts, before.all_known_after(counts))
    times = latency.sample_times(frames.commits, frames.new_records, latency.one_in(frames.size))
    skewed = F.count_if(latency.is_skewed(plan.snapshot.taken_at))
    timed, seen = stage_counted(times, f"{uri}/timed", skewed=skewed)
    known = keys.with_known_count(found.plain, places)
    return MatchChecks(matches=found, known=known, timed=timed, skewed=seen["skewed"])


def order_findings(run: SparkRun, checks: MatchChecks) -> Iterator[Finding]:
    """Yield the findings about the order of all matches."""
    frames = run.frames
    yield from order.findings(
        checks.matches.ranked,
        frames.new_commits,
        frames.records,
        frames.manifests,
        run.plan.unlisted_shards,
        frames.stage_uri,
    )


def misplaced_findings(run: SparkRun, checks: MatchChecks) -> Iterator[Finding]:
    """Yield the findings about keys in other partitions than Kafka's partitioner chooses."""
    topics = misplaced_keys.keyed_topics(run.plan.log.partition_counts, run.options.topic_rules)
    unrequested = partial(run.sources.read_unrequested, run.plan.snapshot)
    rows = misplaced_keys.misplaced_records(checks.known, topics, unrequested).collect()
    yield from misplaced_keys.findings(rows, run.snapshot, run.unseen)


def sampled_rows(run: SparkRun, checks: MatchChecks, reported: Sequence[Finding]) -> Sequence[Any]:
    """Return the records of a sample, which is another one in each run.

    It includes the messages with a ``reported`` finding of an earlier run.
    """
    commits, size, turn = run.frames.new_commits, run.frames.size, int(run.plan.run_id, 16)
    return sample.sample(checks.known, commits, size, reported, turn).collect()


def sample_findings(run: SparkRun, checks: MatchChecks, rows: Sequence[Any]) -> Iterator[Finding]:
    """Yield the findings about the places and the clocks of the sampled ``rows``."""
    yield from sample.findings(rows, run.snapshot, run.earlier)
    targets = latency_targets(list(run.plan.log.partition_counts), run.options.topic_rules)
    if targets:
        yield from map(latency.slow_finding, latency.slow_topics(checks.timed, targets).collect())
    if not checks.skewed:
        return
    taken_at = run.plan.snapshot.taken_at
    for row in latency.skewed_topics(checks.timed, taken_at).collect():
        place = Partition(row["topic"], row["worst"]["partition"]), row["worst"]["offset"]
        found = run.context.log_reader.records([place])
        yield latency.skew_finding(row, next((each.stamped_by for each in found), None))
