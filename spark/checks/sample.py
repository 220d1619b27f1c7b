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
from spark.checks.stored_rows import content_finding
from spark.columns import schemas
from spark.columns.collected_times import in_utc
from spark.compare.decision_table import Decision
from spark.compare.evidence import SUSPECTS_PER_CALL
from spark.compare.matches import PLACE
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

MESSAGES: Final = 1000
"""Number of messages in the sample, about; at most twice as many."""
SHOWN: Final = 20
"""Of more messages with a wrong recorded place only the number is kept."""


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

    Those that were ``reported`` INCONSISTENT are looked at again, whatever the digest.
    """
    one_of = max(1, messages // MESSAGES)
    altered = (each for each in reported if each.cause is Cause.INCONSISTENT_ROW)
    again = [{"half_id": each.half_id} for each in altered]
    records, positions = known.where("NOT redriven"), commits
    chosen: Column = F.pmod("digest", F.lit(one_of)) == turn % one_of
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
    rows: Sequence[Any], snapshot: PostgresSnapshot, before: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the findings about the contents and the places of the sample's records.

    ``before`` are the findings of earlier runs, which had other samples.
    """
    by_half: dict[HalfId, list[Any]] = {}
    for row in rows:
        by_half.setdefault(HalfId(row["half_id"]), []).append(row)
    half_ids, wrong = list(by_half), list[SampledMessage]()
    for at in range(0, len(half_ids), SUSPECTS_PER_CALL):
        chosen_ids = half_ids[at : at + SUSPECTS_PER_CALL]
        halves, places = snapshot.halves(chosen_ids), snapshot.recorded_places(chosen_ids)
        for half_id in chosen_ids:
            if half_id in halves:
                sampled = SampledMessage(
                    rows=by_half[half_id], known=halves[half_id], recorded=places.get(half_id)
                )
                yield from message_findings(sampled)
                wrong += [sampled] if is_recorded_elsewhere(sampled) else []
    yield from place_findings(wrong, before)


def message_findings(sampled: SampledMessage) -> Iterator[Finding]:
    """Yield the finding of altered content, or of the first record in a wrong partition.

    Stored content that was altered shows nothing about the record.
    """
    first, requested = sampled.rows[0], sampled.known.half.message.partition
    altered = content_finding(sampled.known, (first["xid"], first["n"]))
    row = next((r for r in sampled.rows if requested not in (None, r["partition"])), None)
    if altered is not None:
        yield altered
    elif row is not None:
        evidence = {"expected": requested, "actual": row["partition"]}
        yield _finding(Cause.WRONG_PLACE_PARTITION, sampled, row, evidence)


def is_recorded_elsewhere(sampled: SampledMessage) -> bool:
    """Whether none of the records is at the place in ``publication_log``."""
    note = sampled.recorded
    places = {(row["partition"], row["offset"]) for row in sampled.rows}
    return note is not None and (note.partition, note.offset) not in places


def place_findings(
    wrong: Iterable[SampledMessage], before: Iterable[Finding] = ()
) -> Iterator[Finding]:
    """Yield one finding per topic and cause, with the first messages, also those of earlier runs.

    One cause, such as a restore, makes the places of many messages wrong.
    """
    known = {each.subject: each.evidence for each in before}
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in wrong:
        row, note = each.rows[0], each.recorded
        assert note is not None
        part = "offset" if note.partition in {r["partition"] for r in each.rows} else "partition"
        found.setdefault((row["topic"], part), []).append(
            {
                "message_id": str(each.known.half.message_id),
                "recorded": {"partition": note.partition, "offset": note.offset},
                "actual": {"partition": row["partition"], "offset": row["offset"]},
            }
        )
    for (topic, part), messages in sorted(found.items()):
        subject = f"topic:{topic}:recorded {part}"
        earlier = known.get(subject, {}).get("messages", ())
        shown = {each["message_id"]: each for each in (*earlier, *messages)}
        yield Finding(
            cause=Cause.WRONG_OFFSET_RECORDED,
            subject=subject,
            topic=topic,
            evidence={
                "differs": part,
                "in_sample": len(messages),
                "messages": [*shown.values()][:SHOWN],
            },
        )


def _finding(
    cause: Cause, sampled: SampledMessage, row: Any, evidence: Mapping[str, Any]
) -> Finding:
    half = sampled.known.half
    return Finding(
        cause=cause,
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
        evidence=evidence,
    )
