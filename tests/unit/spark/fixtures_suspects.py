"""Messages without exactly one right record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from outbox.messages.message import DecidedBy, HalfMessage, Resolution
from outbox.messages.message_id import HalfId, Nonce
from outbox.reconciliation.log import LogRecord, Partition
from outbox.reconciliation.snapshot import KnownHalf, RecordedPlace, RecordHold
from spark.columns.segments import JUDGED
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.evidence import Copy, Suspect
from spark.compare.facts import Judgement
from spark.findings.finding_class import Cause
from tests.fixtures_messages import make_message
from tests.fixtures_records import render

NOON = datetime(2026, 1, 1, tzinfo=UTC)
HALF = HalfMessage(
    half_id=HalfId(9 << 15 | 3),
    nonce=Nonce(42),
    message=make_message(topic="points", headers=(("tenant", b"north"),)),
    prepared_at=NOON,
    content_digest=77,
)
HERE = Judgement(retired_below=HalfId(0), starts={Partition("points", 0): 0})
COMMITTED = KnownHalf(
    half=HALF, parked=False, decision=Resolution.COMMIT, decided_by=DecidedBy.CHECK, decided_at=NOON
)
P_LISTED = ({"status": "P", "batch_no": 1, "index": 0, "message_id": str(HALF.message_id)},)


def make_copy(**fields: Any) -> Copy:
    """Return a judged record of the half message with equal content."""
    defaults: dict[str, Any] = {
        "partition": Partition("points", 0),
        "offset": 5,
        "published_at": NOON,
        "message_id": str(HALF.message_id),
        "shard": 3,
        "batch_no": 1,
        "redriven": False,
        "digest": 77,
        "key_hash": 1,
        "ahead": False,
    }
    return Copy(**{**defaults, **fields})


def make_suspect(*found: Copy, **fields: Any) -> Suspect:
    """Return a committed, judged and listed half id with these records."""
    defaults: dict[str, Any] = {
        "half_id": HALF.half_id,
        "standing": JUDGED,
        "digest": 77,
        "position": (9, 1),
        "committed_at": NOON,
        "copies": sum(not copy.ahead for copy in found),
        "ahead": sum(copy.ahead for copy in found),
        "found": found,
        "listed": P_LISTED,
        "known": COMMITTED,
    }
    return Suspect(**{**defaults, **fields})


def make_hold(**fields: Any) -> RecordHold:
    """Return the held record of a message, neither released nor dropped."""
    defaults: dict[str, Any] = {
        "publish_error": "",
        "held_at": NOON,
        "waiting": 0,
        "released": False,
        "dropped": False,
    }
    return RecordHold(**{**defaults, **fields})


def causes(suspect: Suspect, judgement: Judgement = HERE) -> list[Cause]:
    """Return the causes of what is found."""
    return [finding.cause for finding in findings_of_suspect(suspect, judgement)]


def read(**changes: Any) -> LogRecord:
    """Return the record of the half message as it was read again, altered."""
    record = render(HALF, DecidedBy.CHECK, "3.1.0")
    return LogRecord(
        partition=Partition(changes.get("topic", record.topic), 0),
        offset=5,
        key=changes.get("key", record.key),
        value=changes.get("value", record.value),
        headers=changes.get("headers", record.headers),
    )


def placed_at(offset: int, partition: int = 0) -> RecordedPlace:
    """Return where the relay recorded a message."""
    return RecordedPlace(partition=partition, offset=offset, batch_no=1)
