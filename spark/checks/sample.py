"""Checks a sample of the records one by one: stored content, requested partition, recorded place.

A wrong recorded place is a systematic fault, so a sample finds it. The half message has the
requested partition; its content is compared with its digest before it is used. On the driver,
bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from outbox.messages.message import Resolution
from outbox.messages.message_id import HalfId
from outbox.reconciliation.snapshot import KnownHalf, RecordedPlace
from spark.checks.queries import query
from spark.checks.stored_rows import content_finding
from spark.columns import schemas
from spark.compare.evidence import SUSPECTS_PER_CALL
from spark.findings.finding import Finding, record_fields
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
    matches: DataFrame, commits: DataFrame, messages: int, reported: Iterable[Finding], turn: int
) -> DataFrame:
    """Return the records of about a thousand of these messages, others each ``turn``.

    Those that were ``reported`` INCONSISTENT are looked at again.
    """
    altered = (each for each in reported if each.cause is Cause.INCONSISTENT_ROW)
    again = [{"half_id": each.half_id} for each in altered]
    one_of = max(1, messages // MESSAGES)
    return query(
        "sampled_records",
        matches=matches,
        commits=commits,
        again=bool(again),
        reported=schemas.frame_of(matches.sparkSession, again, schemas.HALF_IDS),
        one_of=one_of,
        turn=turn % one_of,
        most=2 * (MESSAGES + len(again)),
    )


def findings(
    rows: Iterable[Any], snapshot: PostgresSnapshot, before: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the findings about the contents and the places of the sample's records.

    ``before`` are the findings of earlier runs, which had other samples.
    """
    wrong = list[SampledMessage]()
    for sampled in _sampled(rows, snapshot):
        yield from message_findings(sampled)
        wrong += [sampled] if is_recorded_elsewhere(sampled) else []
    yield from place_findings(wrong, before)


def _sampled(rows: Iterable[Any], snapshot: PostgresSnapshot) -> Iterator[SampledMessage]:
    """Yield the messages that are stored; the rows are in the order of their ids."""
    by_half = {HalfId(i): list(some) for i, some in groupby(rows, itemgetter("half_id"))}
    half_ids = list(by_half)
    for at in range(0, len(half_ids), SUSPECTS_PER_CALL):
        asked = half_ids[at : at + SUSPECTS_PER_CALL]
        halves, places = snapshot.halves(asked), snapshot.recorded_places(asked)
        for i in asked:
            if i in halves:
                yield SampledMessage(rows=by_half[i], known=halves[i], recorded=places.get(i))


def message_findings(sampled: SampledMessage) -> Iterator[Finding]:
    """Yield the finding of altered content, or of the first record in a wrong partition.

    Stored content that was altered shows nothing about the record.
    """
    half = sampled.known.half
    requested = half.message.partition
    altered = content_finding(sampled.known, sampled.rows[0]["position"])
    row = next((r for r in sampled.rows if requested not in (None, r["partition"])), None)
    if altered is not None:
        yield altered
    elif row is not None:
        yield Finding.about_message(
            Cause.WRONG_PLACE_PARTITION,
            half.half_id,
            sampled.known,
            **record_fields(row),
            decision=Resolution.COMMIT,
            evidence={"expected": requested, "actual": row["partition"]},
        )


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
    known = {each.finding_id: each.evidence for each in before}
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
        finding = Finding(
            cause=Cause.WRONG_OFFSET_RECORDED,
            subject=f"topic:{topic}:recorded {part}",
            topic=topic,
        )
        earlier = known.get(finding.finding_id, {}).get("messages", ())
        shown = {each["message_id"]: each for each in (*earlier, *messages)}
        evidence = {
            "differs": part,
            "in_sample": len(messages),
            "messages": [*shown.values()][:SHOWN],
        }
        yield replace(finding, evidence=evidence)
