"""The step of an audit that judges the suspects, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.audit.step_values import Compared, Read
from spark.checks.retention import ExpiredMessages, has_expired
from spark.compare import placement
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.evidence import SUSPECTS_PER_CALL, Suspect, look_up
from spark.compare.facts import Judgement, is_unverifiable, may_be_compacted
from spark.compare.last_records import (
    KEY_COLUMNS,
    missing_tombstone_topics,
    with_superseded,
)
from spark.compare.oldest_records import OldestRecords
from spark.compare.tombstones import Tombstones
from spark.findings.ledger import Ledger

UNEXPLAINED_MOST: Final = 100_000
"""Suspects that wait for the tombstones of all others; further ones are judged at once."""


def enter_suspects(compared: Compared, judgement: Judgement, ledger: Ledger) -> list[HalfId]:
    """Judge the suspects; return those that nothing can settle."""
    read = compared.read
    gathered = placement.evidence(
        compared.unsettled.where("suspect"), read.frames.records, read.frames.listings
    )
    entry = _Entry(read, judgement, ledger, OldestRecords(read.frames.records))
    for rows in chunks(gathered.toLocalIterator(prefetchPartitions=True)):
        entry.enter(rows)
    for rows in chunks(iter(entry.unexplained)):
        entry.enter_again(rows)
    ledger.enter(entry.expired.findings(judgement))
    ledger.expired += entry.expired.half_ids
    return entry.half_ids


def chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield the rows, so many at a time as one look-up takes."""
    while chunk := list(islice(rows, SUSPECTS_PER_CALL)):
        yield chunk


@dataclass(slots=True)
class _Entry:
    """Judges rows of evidence; what a tombstone may explain is judged when all are known."""

    read: Read
    judgement: Judgement
    ledger: Ledger
    oldest: OldestRecords
    expired: ExpiredMessages = field(default_factory=ExpiredMessages)
    half_ids: list[HalfId] = field(default_factory=list)
    unexplained: list[Any] = field(default_factory=list)
    tombstones: Tombstones = field(default_factory=Tombstones)

    def enter(self, rows: list[Any]) -> None:
        """Judge all but those that only a tombstone of another chunk could explain."""
        suspects = self._looked_up(rows)
        self.tombstones.note([s for s in suspects if s.superseded], self.judgement)
        waiting = {each.half_id for each in suspects if self._waits(each)}
        if len(self.unexplained) + len(waiting) > UNEXPLAINED_MOST:
            waiting = set()
        self.unexplained += [each for each in rows if each["half_id"] in waiting]
        self._judge([each for each in suspects if each.half_id not in waiting])

    def enter_again(self, rows: list[Any]) -> None:
        """Judge those that waited."""
        self._judge(self._looked_up(rows))

    def _looked_up(self, rows: list[Any]) -> tuple[Suspect, ...]:
        log_reader = self.read.captured.context.log_reader
        looked_up = look_up(rows, self.read.snapshot, log_reader)
        records = self._records_of_keys(looked_up)
        return with_superseded(looked_up, self.judgement, records, self.tombstones, log_reader)

    def _records_of_keys(self, suspects: Sequence[Suspect]) -> DataFrame:
        """Return the records of the run, with all of each topic that lacks a tombstone.

        Earlier runs have read the older records of its key. Compaction keeps a tombstone for a day
        by default, so it is rare that one is missing.
        """
        new, log = self.read.frames.records, self.read.plan.log
        topics = missing_tombstone_topics(suspects, self.judgement)
        if not topics or self.read.planned.previous is None:
            return new
        ranges = [each for each in log.records if each.partition.topic in topics]
        whole = self.read.captured.context.sources.read_records(ranges)
        columns = whole.withColumn("carried", F.lit(False)).select(*KEY_COLUMNS)
        return new.select(*KEY_COLUMNS).unionByName(columns)

    def _waits(self, suspect: Suspect) -> bool:
        return not suspect.superseded and may_be_compacted(suspect, self.judgement)

    def _judge(self, chosen: Sequence[Suspect]) -> None:
        suspects = self.oldest.with_outlived(chosen, self.judgement)
        self.ledger.unverifiable += sum(is_unverifiable(s, self.judgement) for s in suspects)
        self.ledger.enter(
            found for each in suspects for found in findings_of_suspect(each, self.judgement)
        )
        self.expired.note(suspects, self.judgement)
        self.half_ids += [s.half_id for s in suspects if has_expired(s, self.judgement)]
