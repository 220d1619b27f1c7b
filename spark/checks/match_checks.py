"""Checks of the matches of commits with records: order, keys, places and clocks.

Cheap passes over all matches come first. What they flag is examined in detail, a few rows at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.reconciliation.log import LogReader, Partition
from spark.checks import keys, latency, misplaced_keys, order, sample
from spark.columns.frames import Frames
from spark.columns.staging import stage_counted
from spark.compare import matches
from spark.compare.bucket_checksums import Mismatch
from spark.compare.matches import Matches
from spark.cut.cut_plan import Plan
from spark.cut.log_state import LogState
from spark.cut.sources import Sources
from spark.findings.finding import Finding
from spark.findings.topic_rules import TopicRules, latency_targets
from spark.run_context import Options

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchChecks:
    """The matches of a run, and what the checks need besides."""

    matches: Matches
    timed: DataFrame
    """A sample of the newly read records with the times of their commits."""
    skewed: int
    """Number of its records with an impossible time."""
    commits: DataFrame
    records: DataFrame
    manifests: DataFrame
    plan: Plan
    stage_uri: str
    rules: TopicRules
    messages: int
    known: DataFrame
    """The plain matches with ``all_known``: whether the relay knew all partitions by then."""
    elsewhere: int | None
    """``Frames.elsewhere``"""

    @property
    def starts(self) -> Mapping[Partition, int]:
        """The start of each partition that was read."""
        return {each.partition: each.start for each in self.plan.log.records}

    @property
    def partitions(self) -> Mapping[str, int]:
        """The number of partitions of each topic at the cut."""
        return self.plan.log.partition_counts


def collect(options: Options, plan: Plan, frames: Frames, mismatch: Mismatch | None) -> MatchChecks:
    """Match the judged commits with their records, and prepare the frames of the checks."""
    uri, counts = frames.stage_uri, plan.log.partition_counts
    found = matches.matches_of(frames, mismatch, uri)
    before = plan.log.before or LogState()
    places = keys.first_known_places(found.plain, counts, before.all_known_after(counts))
    known = keys.with_known_count(found.plain, places)
    times = latency.sample_times(frames.commits, frames.new_records, latency.one_in(frames.size))
    skewed = F.count_if(latency.is_skewed(plan.snapshot.taken_at))
    timed, seen = stage_counted(times, f"{uri}/timed", skewed=skewed)
    return MatchChecks(
        matches=found,
        known=known,
        elsewhere=frames.elsewhere,
        timed=timed,
        skewed=seen["skewed"],
        commits=frames.new_commits,
        records=frames.records,
        manifests=frames.manifests,
        plan=plan,
        stage_uri=uri,
        rules=options.topic_rules,
        messages=frames.size,
    )


def order_findings(checks: MatchChecks) -> Iterator[Finding]:
    """Yield the findings about the order of all matches."""
    yield from order.findings(
        checks.matches.ranked,
        checks.commits,
        checks.records,
        checks.manifests,
        checks.plan.unlisted_shards,
        checks.stage_uri,
    )


def misplaced_findings(
    checks: MatchChecks,
    sources: Sources,
    snapshot: PostgresSnapshot,
    reported: Sequence[Finding],
) -> Iterator[Finding]:
    """Yield the findings about keys in other partitions than Kafka's partitioner chooses.

    They include the counts of the ``reported`` findings of earlier runs.
    """
    if checks.elsewhere == 0:
        return
    topics = misplaced_keys.keyed_topics(checks.partitions, checks.rules)
    unrequested = partial(sources.read_unrequested, checks.plan.snapshot)
    rows = misplaced_keys.misplaced_records(checks.known, topics, unrequested).collect()
    yield from misplaced_keys.findings(rows, snapshot, reported)


def sampled_rows(checks: MatchChecks, reported: Sequence[Finding]) -> Sequence[Any]:
    """Return the records of a sample.

    It includes the messages with a ``reported`` finding of an earlier run.
    """
    return sample.sample(checks.known, checks.commits, checks.messages, reported).collect()


def sample_findings(
    checks: MatchChecks, snapshot: PostgresSnapshot, log_reader: LogReader, rows: Sequence[Any]
) -> Iterator[Finding]:
    """Yield the findings about the places and the clocks of the sampled ``rows``."""
    yield from sample.findings(rows, snapshot)
    yield from _latency_findings(checks, log_reader)


def _latency_findings(checks: MatchChecks, log_reader: LogReader) -> Iterator[Finding]:
    targets = latency_targets(list(checks.partitions), checks.rules)
    if targets:
        yield from map(latency.slow_finding, latency.slow_topics(checks.timed, targets).collect())
    if not checks.skewed:
        return
    taken_at = checks.plan.snapshot.taken_at
    for row in latency.skewed_topics(checks.timed, taken_at).collect():
        place = Partition(row["topic"], row["worst"]["partition"]), row["worst"]["offset"]
        stamped_by = next((each.stamped_by for each in log_reader.records([place])), None)
        yield latency.skew_finding(row, stamped_by)
