"""What is judged of commits beside the records of their content: order, keys, places, clocks.

Cheap looks at all pairs come first; what they flag is looked at closely, a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from outbox.reconciliation.log import Partition
from outbox.reconciliation.ports import LogReader, SourceSnapshot
from spark.checks import keys, latency, order, sample
from spark.checks.misplaced_keys import MisplacedRecords, suspected
from spark.compare.matches import Matches
from spark.compare.sha256_check import Digest
from spark.cut.cut_plan import Plan
from spark.cut.sources import Sources
from spark.findings.finding import Finding
from spark.findings.topic_rules import TopicRules, targets_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchChecks:
    """The pairs of a run, and what they came from."""

    pairs: Matches
    timed: DataFrame
    """A sample of the newly read records beside the times of their commits."""
    commits: DataFrame
    records: DataFrame
    manifests: DataFrame
    plan: Plan
    stage_uri: str
    rules: TopicRules
    messages: int
    known: DataFrame
    """The plain pairs, telling of each whether all partitions were known by then."""
    strays: MisplacedRecords
    digest: Digest = Digest.XXH64
    """By what the sample is compared."""

    @property
    def starts(self) -> Mapping[Partition, int]:
        """Where each partition begins that was read."""
        return {each.partition: each.start for each in self.plan.log.records}

    @property
    def partitions(self) -> Mapping[str, int]:
        """How many partitions each topic has at the cut."""
        return self.plan.log.partition_counts


def of_order(matched: MatchChecks, sources: Sources) -> Iterator[Finding]:
    """Yield what is wrong with the order of all pairs: of commits, of keys."""
    yield from order.findings(
        matched.pairs.ranked,
        matched.commits,
        matched.records,
        matched.manifests,
        matched.plan.unlisted_shards,
        matched.stage_uri,
    )
    keyed = keys.keyed(matched.known)
    yield from _of_keys(matched, sources, suspected(keyed, matched.strays))


def of_sample(
    matched: MatchChecks, snapshot: SourceSnapshot, log_facts: LogReader
) -> Iterator[Finding]:
    """Yield what is wrong with the places, the contents and the clocks of a sample."""
    rows = sample.sample(matched.known, matched.commits, matched.messages).collect()
    reread = log_facts if matched.digest is Digest.SHA256 else None
    yield from sample.findings(rows, snapshot, matched.partitions, reread)
    yield from _of_latency(matched, log_facts)


def _of_keys(matched: MatchChecks, sources: Sources, suspected: DataFrame) -> Iterator[Finding]:
    spread = keys.spread(suspected)
    topics = sorted(row["topic"] for row in spread.select("topic").distinct().collect())
    if topics:
        free = sources.read_unrequested(matched.plan.snapshot, topics)
        split = keys.splits(suspected, spread, free).orderBy("topic")
        yield from map(keys.of_split, split.collect())


def _of_latency(matched: MatchChecks, log_facts: LogReader) -> Iterator[Finding]:
    targets = targets_of(list(matched.partitions), matched.rules)
    if targets:
        yield from map(latency.of_slow, latency.slow(matched.timed, targets).collect())
    taken_at = matched.plan.snapshot.taken_at
    for row in latency.skews(matched.timed, taken_at).collect():
        place = Partition(row["topic"], row["worst"]["partition"]), row["worst"]["offset"]
        stamped_by = next((each.stamped_by for each in log_facts.records([place])), None)
        yield latency.of_skew(row, stamped_by)
