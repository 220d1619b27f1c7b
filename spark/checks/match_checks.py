"""Checks of the matches of commits with records: order, keys and places.

Cheap passes over all matches come first. What they flag is examined in detail, a few rows at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from spark.checks import keys, misplaced_keys, order, sample
from spark.compare import matches
from spark.compare.bucket_checksums import Mismatch
from spark.compare.matches import Matches
from spark.cut.log_state import LogState
from spark.findings.finding import Finding
from spark.run_context import SparkRun


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchChecks:
    """The matches of a run."""

    matches: Matches
    known: DataFrame
    """The plain matches with ``all_known``: whether the relay knew all partitions by then."""


def collect(run: SparkRun, mismatch: Mismatch | None) -> MatchChecks:
    """Match the judged commits with their records, and prepare the frames of the checks."""
    plan, frames = run.plan, run.frames
    counts = plan.log.partition_counts
    found = matches.matches_of(frames, mismatch, frames.stage_uri)
    before = plan.log.before or LogState()
    places = keys.first_known_places(found.plain, counts, before.all_known_after(counts))
    return MatchChecks(matches=found, known=keys.with_known_count(found.plain, places))


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
