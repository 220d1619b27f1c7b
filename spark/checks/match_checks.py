"""Checks of the matches of commits with records: order, keys and places.

Cheap passes over all matches come first. What they flag is examined in detail, a few rows at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from spark.checks import misplaced_keys, order, sample
from spark.compare.matches import Matches
from spark.cut.log_state import LogState
from spark.findings.finding import Finding
from spark.run_context import SparkRun


def order_findings(run: SparkRun, matches: Matches) -> Iterator[Finding]:
    """Yield the findings about the order of all matches."""
    frames = run.frames
    return order.findings(
        matches.ranked,
        frames.commits,
        frames.records,
        frames.manifests,
        run.plan.unlisted_shards,
        frames.stage_uri,
    )


def misplaced_findings(run: SparkRun, matches: Matches) -> Iterator[Finding]:
    """Yield the findings about keys in other partitions than Kafka's partitioner chooses."""
    counts, before = run.plan.log.partition_counts, run.plan.log.before or LogState()
    rows = misplaced_keys.misplaced_topics(
        matches.plain,
        misplaced_keys.keyed_topics(counts, run.options.topic_rules),
        before.all_known_after(counts),
        partial(run.sources.read_unrequested, run.plan.snapshot),
    )
    return misplaced_keys.findings(rows, run.snapshot, run.unseen)


def sampled_rows(run: SparkRun, matches: Matches, reported: Sequence[Finding]) -> Sequence[Any]:
    """Return the records of a sample, which is another one in each run.

    It includes the messages with a ``reported`` finding of an earlier run.
    """
    commits, size, turn = run.frames.commits, run.frames.size, int(run.plan.run_id, 16)
    return sample.sample(matches.plain, commits, size, reported, turn).collect()
