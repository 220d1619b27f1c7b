"""The evidence about suspects: single lookups in both stores, bounded, on the driver, in the cut.

The database is read in the plan's snapshot. A record is read again by its offset only if its digest
differs from the committed one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import LogRecord, Partition
from outbox.reconciliation.snapshot import KnownHalf, RecordedPlace, RecordHold
from spark.columns.collected_times import in_utc
from spark.compare.decision_table import Content
from spark.compare.field_diff import Comparison, compare

if TYPE_CHECKING:
    from outbox.kafka.log_reader import KafkaLogReader
    from outbox.postgres.reconciliation.source import PostgresSnapshot

SUSPECTS_PER_CALL: Final = 1000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A record with a suspect's half id."""

    partition: Partition
    offset: int
    published_at: datetime | None
    message_id: str
    shard: int | None
    batch_no: int | None
    redriven: bool
    digest: int
    key_hash: int | None
    ahead: bool
    again: bool = False
    """The previous run had read the batch that it names before it was written."""
    repair: str | None = None
    """The order of the repair that published it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """All facts about one half id that is not exactly one clean pair of commit and record."""

    half_id: HalfId
    standing: str | None
    digest: int | None
    position: tuple[int, int] | None
    committed_at: datetime | None
    copies: int
    ahead: int
    found: tuple[Copy, ...]
    listed: tuple[Mapping[str, Any], ...]
    known: KnownHalf | None = None
    hold: RecordHold | None = None
    place: RecordedPlace | None = None
    forgotten: frozenset[str] = frozenset()
    """Message ids that the relay's recovery found: of this suspect, and of others of its chunk."""
    comparison: Comparison | None = None
    superseded: bool = False
    """Its topic is compacted, and a later message of its key replaces it."""

    @property
    def message_id(self) -> UUID | None:
        """The id of the half message in the database."""
        return self.known.half.message_id if self.known else None

    @property
    def named_id(self) -> str:
        """The message id as text: of the half, else as manifests or records name it."""
        names = chain((e["message_id"] for e in self.listed), (c.message_id for c in self.found))
        return str(self.message_id or next(names, self.half_id))

    @property
    def own(self) -> tuple[Copy, ...]:
        """Its judged records: those with its message id, not only its half id."""
        return tuple(c for c in self.found if not c.ahead and self._is_own(c))

    @property
    def strangers(self) -> tuple[Copy, ...]:
        """Records with the half id but other random bits.

        If no half is stored, the random bits of the message are unknown. After a restore another
        message may have got the half id of one that was lost; the lost one is the stranger.
        """
        return tuple(c for c in self.found if not self._is_own(c))

    @property
    def first(self) -> Copy | None:
        """The record that represents the message: of equal digest, else the first by place."""
        return min(self.own, key=self._rank, default=None)

    def _rank(self, copy: Copy) -> tuple[bool, Partition, int]:
        return copy.digest != self.digest, copy.partition, copy.offset

    def _is_own(self, copy: Copy) -> bool:
        if self.message_id is not None:
            return copy.message_id == str(self.message_id)
        return not self.is_missing_in_postgres(copy) or all(
            map(self.is_missing_in_postgres, self.found)
        )

    def is_missing_in_postgres(self, copy: Copy) -> bool:
        """Return whether the relay's recovery found the record, and PostgreSQL had lost it."""
        return copy.message_id in self.forgotten


def chunks(rows: Iterator[T]) -> Iterator[list[T]]:
    """Yield the rows, so many at a time as one look-up takes."""
    while chunk := list(islice(rows, SUSPECTS_PER_CALL)):
        yield chunk


def look_up(
    rows: Sequence[Any], snapshot: PostgresSnapshot, log_reader: KafkaLogReader
) -> tuple[Suspect, ...]:
    """Complete at most 1 000 rows of evidence with the facts from both stores."""
    half_ids = [HalfId(row["half_id"]) for row in rows]
    halves, holds = snapshot.halves(half_ids), snapshot.held_records(half_ids)
    places = snapshot.recorded_places(half_ids)
    forgotten = frozenset(map(str, snapshot.already_published(half_ids)))
    suspects = [
        _suspect(row, halves.get(i), holds.get(i), places.get(i), forgotten)
        for i, row in zip(half_ids, rows, strict=True)
    ]
    return _with_comparisons(suspects, log_reader)


def _suspect(
    row: Any,
    known: KnownHalf | None,
    hold: RecordHold | None,
    place: RecordedPlace | None,
    forgotten: frozenset[str],
) -> Suspect:
    committed = row["committed_digest"]
    return Suspect(
        half_id=HalfId(row["half_id"]),
        standing=row["standing"],
        digest=known.half.content_digest if committed is None and known else committed,
        position=None if row["xid"] is None else (row["xid"], row["n"]),
        committed_at=in_utc(row["committed_at"]),
        copies=row["copies"],
        ahead=row["ahead"],
        found=tuple(map(_copy, row["found"] or ())),
        listed=tuple(each.asDict() for each in row["listed"] or ()),
        known=known,
        hold=hold,
        place=place,
        forgotten=forgotten,
        superseded=bool(row["superseded"]),
    )


def _copy(found: Any) -> Copy:
    facts = found.asDict()
    partition = Partition(facts.pop("topic"), facts.pop("partition"))
    return Copy(**{**facts, "partition": partition, "published_at": in_utc(found["published_at"])})


def _with_comparisons(
    suspects: Sequence[Suspect], log_reader: KafkaLogReader
) -> tuple[Suspect, ...]:
    """Read the records with a different digest again, and compare them field by field."""
    places = {
        s.half_id: (s.first.partition, s.first.offset)
        for s in suspects
        if s.known and s.digest is not None and s.first and s.first.digest != s.digest
    }
    records = {(r.partition, r.offset): r for r in log_reader.records(sorted(places.values()))}
    return tuple(
        replace(s, comparison=_comparison(s.known, records.get(places[s.half_id])))
        if s.known and s.half_id in places
        else s
        for s in suspects
    )


def _comparison(known: KnownHalf, record: LogRecord | None) -> Comparison:
    if record is None:
        reason = "by digest alone: the record could not be read again"
        return Comparison(content=Content.VALUE, evidence={"compared": reason})
    return compare(known.half, record)
