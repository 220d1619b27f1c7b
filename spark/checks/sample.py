"""A sample of the records, looked at one by one: the partition, the place the relay noted, SHA-256.

A wrong partitioner and a wrong note are systematic faults, so a sample finds them; the half message
tells which partition was asked for. Contents are read again where SHA-256 is asked for. On the
driver, bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import Partition
from outbox.reconciliation.ports import LogReader, SourceSnapshot
from outbox.reconciliation.snapshot import KnownHalf, RecordedPlace
from spark.checks.latency import sampled
from spark.columns.murmur2 import partition_of
from spark.compare.decision_table import MISMATCH, Decision
from spark.compare.evidence import SUSPECTS_A_CALL
from spark.compare.sha256_check import Altered, altered, read_again
from spark.findings.finding import Finding
from spark.findings.finding_class import RULES, FindingClass

MESSAGES: Final = 1000
"""About so many messages are looked at, at most twice as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A message of the sample, its records, and what the database says of it."""

    rows: Sequence[Any]
    known: KnownHalf
    recorded: RecordedPlace | None
    partitions: int
    altered: Altered | None = None
    """How its record differs although its digest does not, if that was asked for."""


def sample(known: DataFrame, commits: DataFrame, messages: int) -> DataFrame:
    """Return the records of about a thousand of so many messages, chosen by their digests."""
    one_of = max(1, messages // MESSAGES)
    chosen = known.where(~F.col("redriven") & sampled(one_of))
    first = chosen.orderBy("half_id", "topic", "partition", "offset").limit(2 * MESSAGES)
    positions = commits.where(sampled(one_of)).select("half_id", "xid", "n", "committed_at")
    return first.join(positions, "half_id").orderBy("half_id", "topic", "partition", "offset")


def findings(
    rows: Sequence[Any],
    snapshot: SourceSnapshot,
    partitions: Mapping[str, int],
    log_facts: LogReader | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong with the sample's records: their places and, by SHA-256, their contents.

    Without ``log_facts`` no record is read again.
    """
    by_half: dict[HalfId, list[Any]] = {}
    for row in rows:
        by_half.setdefault(HalfId(row["half_id"]), []).append(row)
    half_ids = list(by_half)
    for at in range(0, len(half_ids), SUSPECTS_A_CALL):
        asked = half_ids[at : at + SUSPECTS_A_CALL]
        halves, places = snapshot.halves(asked), snapshot.places(asked)
        lie = {i: [_place_of(row) for row in by_half[i]] for i in asked if log_facts}
        records = read_again(lie, snapshot, log_facts) if log_facts else {}
        for half_id in asked:
            first = by_half[half_id][0]
            if half_id in halves:
                yield from of_sampled(
                    Sampled(
                        rows=by_half[half_id],
                        known=halves[half_id],
                        recorded=places.get(half_id),
                        partitions=partitions[first["topic"]],
                        altered=altered(halves[half_id].half, records.get(half_id, ())),
                    )
                )


def of_sampled(sampled: Sampled) -> tuple[Finding, ...]:
    """Return one finding of a message, named by its worst fault, the others in its detail."""
    faults = [*_altered(sampled), *_misplaced(sampled), *_noted_elsewhere(sampled)]
    if not faults:
        return ()
    finding_class, row, _ = max(faults, key=lambda fault: RULES[fault[0]].severity)
    detail = {name: value for *_, evidence in faults for name, value in evidence.items()}
    return (_finding(finding_class, sampled, row, detail),)


def expected_partition(sampled: Sampled) -> int | None:
    """Return where the record must lie: where it was asked for, else by its key, else anywhere."""
    content, row = sampled.known.half.message.content, sampled.rows[0]
    if content.partition is not None:
        return content.partition
    return (
        partition_of(content.key, sampled.partitions) if content.key and row["all_known"] else None
    )


Fault = tuple[FindingClass, Any, Mapping[str, Any]]
"""Its class, the row that shows it, and the evidence."""


def _altered(sampled: Sampled) -> Iterator[Fault]:
    """Yield the record that is not what was prepared, and how."""
    if sampled.altered is None:
        return
    (finding_class,) = MISMATCH[sampled.altered.content]
    row = next(r for r in sampled.rows if _place_of(r) == sampled.altered.place)
    yield finding_class, row, sampled.altered.detail


def _misplaced(sampled: Sampled) -> Iterator[Fault]:
    """Yield the first record that is in another partition than it must be in."""
    expected = expected_partition(sampled)
    row = next((r for r in sampled.rows if expected not in (None, r["partition"])), None)
    if row is not None:
        requested = sampled.known.half.message.content.partition is not None
        evidence = {"expected": expected, "actual": row["partition"], "requested": requested}
        yield FindingClass.WRONG_PARTITION, row, evidence


def _noted_elsewhere(sampled: Sampled) -> Iterator[Fault]:
    """Yield the place that ``publication_log`` names, if none of the records lies there."""
    note = sampled.recorded
    lie = {(row["partition"], row["offset"]) for row in sampled.rows}
    if note is not None and (note.partition, note.offset) not in lie:
        evidence = {"recorded": {"partition": note.partition, "offset": note.offset}}
        yield FindingClass.WRONG_OFFSET, sampled.rows[0], evidence


def _place_of(row: Any) -> tuple[Partition, int]:
    return Partition(row["topic"], row["partition"]), row["offset"]


def _finding(
    finding_class: FindingClass, sampled: Sampled, row: Any, detail: Mapping[str, Any]
) -> Finding:
    half = sampled.known.half
    return Finding(
        finding_class=finding_class,
        subject=f"message:{half.message_id}",
        half_id=half.half_id,
        message_id=str(half.message_id),
        topic=row["topic"],
        partition=row["partition"],
        offset=row["offset"],
        key=half.message.content.key,
        key_hash=row["key_hash"],
        producer_group=half.message.producer_group,
        shard=row["shard"],
        batch_no=row["batch_no"],
        position=(row["xid"], row["n"]),
        decision=Decision.COMMIT.value,
        decided_at=row["committed_at"],
        record_time=row["published_at"],
        by_sha256=sampled.altered is not None,
        detail=detail,
    )
