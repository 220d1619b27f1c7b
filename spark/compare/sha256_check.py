"""Compares records whose content digest is the committed one by SHA-256.

No two contents share an XXH64 by accident, but a writer can craft a second one. Two sets of
messages are compared: a sample, if that is requested, and in every run those that an earlier run
reported, because no other check sees them or their repair. On the driver, bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from outbox.errors import InvalidMessageId
from outbox.messages.content_digest import content_sha256
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId, parse_message_id
from outbox.reconciliation.log import LogReader, LogRecord, Partition
from spark.compare.decision_table import Content
from spark.compare.field_diff import compare, covered_in, covered_of, message_id_in
from spark.findings.finding import Finding

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

EQUAL_BY: Final = "equal by XXH64, not by SHA-256"
Place = tuple[Partition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """A record that differs from its half message although its digest is equal."""

    place: Place
    content: Content
    detail: Mapping[str, Any]


def alteration_of(half: HalfMessage, records: Sequence[LogRecord]) -> Alteration | None:
    """Return how the first record of a message differs; None if one of its records is correct."""
    expected, actual = _expected(half), [_actual(each) for each in records]
    if not actual or expected in actual:
        return None
    comparison = compare(half, records[0])
    detail = {
        "digests": EQUAL_BY,
        "sha256": {"expected": expected.hex(), "actual": actual[0].hex()},
        "differs": dict(comparison.detail),
    }
    place = (records[0].partition, records[0].offset)
    return Alteration(place=place, content=comparison.content, detail=detail)


def reread_records(
    places: Mapping[HalfId, Sequence[Place]], snapshot: PostgresSnapshot, log_reader: LogReader
) -> Mapping[HalfId, Sequence[LogRecord]]:
    """Return the records of each message, or none of them if one cannot be read.

    A message that a repair has published again is left out: it is repaired, whatever its first
    record was.
    """
    holds = snapshot.held_records(list(places)).items()
    repaired = {half_id for half_id, hold in holds if hold.repaired and hold.released}
    wanted = {half_id: at for half_id, at in places.items() if half_id not in repaired}
    found = log_reader.records({place for at in wanted.values() for place in at})
    by_place = {(each.partition, each.offset): each for each in found}
    return {
        half_id: [by_place[place] for place in at] if by_place.keys() >= {*at} else []
        for half_id, at in wanted.items()
    }


def remaining_alterations(
    reported: Sequence[Finding],
    snapshot: PostgresSnapshot,
    log_reader: LogReader,
    starts: Mapping[Partition, int],
) -> Iterator[Finding]:
    """Yield those of at most 1 000 findings that still hold, or that cannot be checked now.

    ``starts`` is where each readable partition begins: records before it have expired.
    """
    by_half = {each.half_id: each for each in reported if each.half_id is not None}
    places = {half_id: _place_of(each) for half_id, each in by_half.items()}
    kept = {i: (p, at) for i, (p, at) in places.items() if at >= starts.get(p, 0)}
    readable = {i: [(p, at)] if p in starts else [] for i, (p, at) in kept.items()}
    halves = snapshot.halves(list(kept))
    for half_id, records in reread_records(readable, snapshot, log_reader).items():
        if half_id in halves and _is_still_altered(halves[half_id].half, records):
            yield by_half[half_id]


def _is_still_altered(half: HalfMessage, records: Sequence[LogRecord]) -> bool:
    """Whether a message is still altered; another message's record at its place means it is gone.

    A record that cannot be read counts as unchanged.
    """
    own = [each for each in records if _half_id_in(each) == half.half_id]
    return not records or alteration_of(half, own) is not None


def _place_of(finding: Finding) -> Place:
    return Partition(finding.topic or "", finding.partition or 0), finding.offset or 0


def _half_id_in(record: LogRecord) -> HalfId | None:
    try:
        return parse_message_id((message_id_in(record) or b"").decode("utf-8", "replace"))[0]
    except InvalidMessageId:
        return None


def _expected(half: HalfMessage) -> bytes:
    message = half.message
    message_id = str(half.message_id).encode()
    return content_sha256(message_id, message.topic, message.key, message.value, covered_of(half))


def _actual(record: LogRecord) -> bytes:
    return content_sha256(
        message_id_in(record),
        record.partition.topic,
        record.key,
        record.value,
        covered_in(record),
    )
