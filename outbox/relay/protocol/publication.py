"""RUN: one batch, one Kafka transaction, its manifest last; then the next.

Records and manifest travel together, and one flush waits for all of them. The transaction is
committed only if Kafka has acknowledged each; otherwise it is aborted by the next fence, with
the manifest that lists more than Kafka has. After a failure, and for releases, the manifest waits
for the acknowledged records. So a refusal is acted upon only where no manifest lists the record.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from outbox.messages.manifest import HELD, PUBLISHED, PUBLISHED_BEFORE, Entry, Kind
from outbox.relay.protocol.actions import (
    Commit,
    HoldRecords,
    Publish,
    ReadHeld,
    Rest,
    SaveProgress,
)
from outbox.relay.protocol.answers import CommitEnded, Commits, DeliveryReport
from outbox.relay.protocol.record_hold import (
    on_held_read,
    on_refused,
    on_release_committed,
)
from outbox.relay.protocol.state import Cursor, Relay, require
from outbox.relay.protocol.transition import Next, drop, goes_apart, most_of, narrow_again

CLEAN_COMMIT_SECONDS: Final = 0.5
"""Half of retry.backoff.ms: a commit that returned earlier cannot have been sent twice."""
PROGRESS_SECONDS: Final = 1.0
"""The shortest time between two writes of the progress row, which is a lower bound."""
AWAITED_SECONDS: Final = 0.05
"""The same while a caller waits for what was published: it learns that from this row."""
IDLE_SECONDS: Final = 1.0
UNDELIVERED: Final = "undelivered"
"""Why a producer is dropped after a batch that Kafka did not take as a whole."""
SIGN_OF_LIFE_SECONDS: Final = 86_400.0
"""An idle shard writes an empty manifest this often, so that its log never expires."""


def on_commits_read(state: Relay, read: Commits) -> Next:
    """Begin a batch; messages that Kafka already has or refuses are listed, not produced.

    Due held records and new commits alternate.
    """
    if read.kind is not Kind.BATCH:
        return on_held_read(state, read)
    if read.due and not (read.message_ids and state.released_last):
        return state, (ReadHeld(state.at.position, most_of(state.release_suspects)),)
    if not read.message_ids:
        return on_nothing_to_do(state, read)
    entries = tuple(Entry(each, _status(each, read)) for each in read.message_ids)
    batch = state.next_manifest(Kind.BATCH, read.to, entries)
    held = tuple(entry.message_id for entry in entries if entry.status == HELD)
    holding = (HoldRecords(batch, held, None),) if held else ()
    awaited = state.awaited or read.awaited
    started = replace(state, batch=batch, released_last=False, awaited=awaited)
    return started, (*holding, Publish(batch, goes_apart(started)))


def _status(message_id: bytes, read: Commits) -> bytes:
    if message_id in read.before:
        return PUBLISHED_BEFORE
    return HELD if message_id in read.held else PUBLISHED


def on_nothing_to_do(state: Relay, read: Commits) -> Next:
    quiet = replace(state, failures=0)
    if state.signed_at is None:
        quiet = replace(quiet, signed_at=read.at)
    elif read.at - state.signed_at >= SIGN_OF_LIFE_SECONDS:
        batch = state.next_manifest(Kind.BATCH, state.at.position, ())
        return replace(quiet, batch=batch), (Publish(batch),)
    quiet, saving = save_if_due(quiet, read.at)
    return quiet, (*saving, Rest(_until_next_save(quiet, read.at), until_commits=True))


def on_delivered(state: Relay, delivered: DeliveryReport) -> Next:
    """Count the good reports here: a transaction may commit although messages were dropped.

    A manifest below the last one is in another log.
    """
    cursor, batch = state.at, require(state.batch)
    if delivered.refused is not None:
        return on_refused(state, delivered)
    if delivered.good != len(batch.published):
        return drop(narrow_again(state), UNDELIVERED)
    if delivered.offset < cursor.manifest_offset:
        return drop(narrow_again(state), "manifest")
    candidate = Cursor(batch.to, delivered.offset + 1, batch.batch_no, delivered.crc, cursor.gen)
    return replace(state, candidate=candidate), (Commit(),)


def on_commit_ended(state: Relay, ended: CommitEnded) -> Next:
    """Keep the handle only if the commit cannot have been sent twice (the CLEAN rule)."""
    if ended.seconds >= CLEAN_COMMIT_SECONDS:
        return drop(state, "slow_commit")
    batch = require(state.batch)
    moved = replace(
        state,
        cursor=state.candidate,
        candidate=None,
        failures=0,
        signed_at=ended.at,
    )
    if batch.kind is not Kind.BATCH:
        return on_release_committed(moved)
    suspects = max(0, state.suspects - len(batch.entries))
    done = replace(moved, batch=None, dirty=True, suspects=suspects)
    done, saving = save_if_due(done, ended.at)
    return done, (*saving, Rest(0.0))


def save_if_due(state: Relay, at: float) -> Next:
    if not state.dirty or _until_due(state, at) > 0.0:
        return state, ()
    saved = replace(state, dirty=False, saved_at=at, awaited=False)
    return saved, (SaveProgress(state.at),)


def _until_next_save(state: Relay, at: float) -> float:
    return min(IDLE_SECONDS, max(0.0, _until_due(state, at))) if state.dirty else IDLE_SECONDS


def _until_due(state: Relay, at: float) -> float:
    """Return in how many seconds the progress may be saved; 0 or less is now."""
    if state.saved_at is None:
        return 0.0
    return state.saved_at + (AWAITED_SECONDS if state.awaited else PROGRESS_SECONDS) - at
