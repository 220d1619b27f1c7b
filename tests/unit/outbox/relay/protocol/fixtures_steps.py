"""Builds states and answers of the relay's protocol."""

from __future__ import annotations

from uuid import UUID

from outbox.messages.manifest import PUBLISHED, Entry, Kind, Manifest, Position
from outbox.messages.message_id import SHARDS
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Cursor, Found, HaltReason, Identity, Progress, Relay
from outbox.relay.protocol.step import step
from tests.fixtures_replacing import replace

INSTALLATION = UUID(int=7)
IDENTITY = Identity("cluster", "topic", "system")
AT = Cursor(Position(90, 2), 5, 3, 0xAA, 4)
IDS = (b"a" * 16, b"b" * 16)
IDLE = Relay(shard=3)


def after(state: Relay, *answers: answers.Answer) -> tuple[Relay, tuple[actions.Action, ...]]:
    """Return where these answers lead, and the last plan."""
    plan: tuple[actions.Action, ...] = ()
    for answer in answers:
        state, plan = step(state, answer)
    return state, plan


def identified(progress: Progress | None = None, **fields: object) -> answers.StoresIdentified:
    known = {"identity": IDENTITY, "partitions": SHARDS, **fields}
    return answers.StoresIdentified(INSTALLATION, progress=progress, **known)  # type: ignore[arg-type]


def stored(cursor: Cursor | None = AT, halt: HaltReason | None = None) -> Progress:
    return Progress(cursor, IDENTITY, halt)


def replaying(cursor: Cursor = AT, end: int = 9) -> Relay:
    """Return a relay that has just read the end of its log."""
    verified, _ = after(IDLE, answers.Rested(), answers.LockTaken(), identified(stored(cursor)))
    return after(verified, answers.Fenced(), answers.Bounds(stored(cursor), 0, end))[0]


def running(cursor: Cursor = AT) -> Relay:
    return replaying(cursor, end=cursor.manifest_offset)


def in_batch() -> Relay:
    """A relay whose records were just produced."""
    return after(running(), commits(*IDS))[0]


def commits(*ids: bytes, at: float = 100.0) -> answers.Commits:
    return answers.Commits(Position(91, len(ids)), ids, at=at)


def manifest(cursor: Cursor = AT, *ids: bytes, **fields: object) -> Manifest:
    made = Manifest(
        installation=INSTALLATION,
        shard=3,
        gen=cursor.gen,
        kind=Kind.BATCH,
        batch_no=cursor.batch_no + 1,
        prev_crc=cursor.crc,
        after=cursor.position,
        to=Position(cursor.position.xid + 1, len(ids or IDS)),
        entries=tuple(Entry(message_id, PUBLISHED) for message_id in ids or IDS),
    )
    return replace(made, **fields)


def read(*manifests: Manifest | None) -> answers.ManifestsRead:
    """Return the answer that these are all manifests up to the end."""
    found = tuple(Found(5 + 2 * n, m, 0xB0 + n) for n, m in enumerate(manifests))
    return answers.ManifestsRead(found, True)
