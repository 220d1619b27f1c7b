"""Checks a sample of the records one by one: stored content, requested partition, recorded place.

A wrong recorded place is a systematic fault, so a sample finds it. The half message has the
requested partition; its content is compared with its digest before it is used. On the driver,
bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from outbox.reconciliation.snapshot import KnownHalf, RecordedPlace
from spark.checks.latency import is_sampled
from spark.checks.stored_rows import content_finding
from spark.columns import schemas
from spark.columns.collected_times import in_utc
from spark.compare.decision_table import Decision
from spark.compare.evidence import SUSPECTS_PER_CALL
from spark.compare.matches import PLACE
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from spark.findings.finding_rules import RULES

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

MESSAGES: Final = 1000
"""Number of messages in the sample, about; at most twice as many."""
FOUND_HERE: Final = (
    *(FindingClass.WRONG_PARTITION, FindingClass.WRONG_OFFSET),
    FindingClass.INCONSISTENT,
)
"""Classes that no other check finds, the last one for altered content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMessage:
    """A message of the sample with its records and its rows in the database."""

    rows: Sequence[Any]
    known: KnownHalf
    recorded: RecordedPlace | None


def sample(
    known: DataFrame, commits: DataFrame, messages: int, reported: Iterable[Finding], turn: int
) -> DataFrame:
    """Return the records of about a thousand of these messages, others each ``turn``.

    The messages with a ``reported`` finding of this check are looked at again, whatever the digest.
    """
    one_of = max(1, messages // MESSAGES)
    again = [{"half_id": each.half_id} for each in reported if each.finding_class in FOUND_HERE]
    records, positions = known.where("NOT redriven"), commits
    chosen: Column = is_sampled(one_of, turn)
    if again:
        named = schemas.frame_of(known.sparkSession, again, schemas.HALF_IDS).distinct()
        marks = named.withColumn("again", F.lit(True))
        records = records.join(F.broadcast(marks), "half_id", "left")
        positions = positions.join(F.broadcast(marks), "half_id", "left")
        chosen = chosen | F.col("again").isNotNull()
    order = ("half_id", *PLACE)
    first = records.where(chosen).orderBy(*order).limit(2 * (MESSAGES + len(again)))
    wanted = positions.where(chosen).select("half_id", "xid", "n", "committed_at")
    return first.join(wanted, "half_id").orderBy(*order)


def findings(
    rows: Sequence[Any],
    snapshot: PostgresSnapshot,
) -> Iterator[Finding]:
    """Yield the findings about the places of the sample's records."""
    by_half: dict[HalfId, list[Any]] = {}
    for row in rows:
        by_half.setdefault(HalfId(row["half_id"]), []).append(row)
    half_ids = list(by_half)
    for at in range(0, len(half_ids), SUSPECTS_PER_CALL):
        chosen_ids = half_ids[at : at + SUSPECTS_PER_CALL]
        halves, places = snapshot.halves(chosen_ids), snapshot.recorded_places(chosen_ids)
        for half_id in chosen_ids:
            if half_id in halves:
                yield from message_findings(
                    SampledMessage(
                        rows=by_half[half_id],
                        known=halves[half_id],
                        recorded=places.get(half_id),
                    )
                )


def message_findings(sampled: SampledMessage) -> tuple[Finding, ...]:
    """Return one finding per message, named by its worst fault, with the others in its detail.

    Stored content that was altered shows nothing about the record.
    """
    first = sampled.rows[0]
    altered = content_finding(sampled.known, (first["xid"], first["n"]))
    if altered is not None:
        return (altered,)
    faults = [
        *_partition_fault(sampled),
        *_offset_fault(sampled),
    ]
    if not faults:
        return ()
    finding_class, row, _ = max(faults, key=lambda fault: RULES[fault[0]].severity)
    detail = {name: value for *_, evidence in faults for name, value in evidence.items()}
    return (_finding(finding_class, sampled, row, detail),)


Fault = tuple[FindingClass, Any, Mapping[str, Any]]
"""Class, row and evidence of a fault."""


def _partition_fault(sampled: SampledMessage) -> Iterator[Fault]:
    """Yield the first record that is not in the requested partition."""
    requested = sampled.known.half.message.partition
    row = next((r for r in sampled.rows if requested not in (None, r["partition"])), None)
    if row is not None:
        evidence = {"expected": requested, "actual": row["partition"]}
        yield FindingClass.WRONG_PARTITION, row, evidence


def _offset_fault(sampled: SampledMessage) -> Iterator[Fault]:
    """Yield the place in ``publication_log``, if none of the records is there."""
    note = sampled.recorded
    places = {(row["partition"], row["offset"]) for row in sampled.rows}
    if note is not None and (note.partition, note.offset) not in places:
        evidence = {"recorded": {"partition": note.partition, "offset": note.offset}}
        yield FindingClass.WRONG_OFFSET, sampled.rows[0], evidence


def _finding(
    finding_class: FindingClass, sampled: SampledMessage, row: Any, detail: Mapping[str, Any]
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
        key=half.message.key,
        key_hash=row["key_hash"],
        producer_group=half.message.producer_group,
        shard=row["shard"],
        batch_no=row["batch_no"],
        position=(row["xid"], row["n"]),
        decision=Decision.COMMIT.value,
        decided_at=in_utc(row["committed_at"]),
        record_time=in_utc(row["published_at"]),
        detail=detail,
    )
