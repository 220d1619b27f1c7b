"""RUN: one batch, one Kafka transaction, its manifest last; then the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from outbox.manifest import PUBLISHED, PUBLISHED_BEFORE, Entry, Kind, Manifest, Position
from outbox.relay_protocol.actions import (
    Begin,
    Commit,
    Publish,
    PublishManifest,
    Rest,
    SaveProgress,
)
from outbox.relay_protocol.answers import CommitEnded, CommitsRead, Delivered, ManifestDelivered
from outbox.relay_protocol.leaving import Next, drop
from outbox.relay_protocol.state import Cursor, Relay, known

CLEAN_COMMIT_SECONDS: Final = 0.5
"""Half of retry.backoff.ms: a commit that returned sooner cannot have been sent twice."""
PROGRESS_SECONDS: Final = 1.0
"""The progress row is written at most this often; it is a lower bound."""
IDLE_SECONDS: Final = 1.0
SIGN_OF_LIFE_SECONDS: Final = 86_400.0
"""An idle shard writes an empty manifest, so that its log never empties by age."""


def on_commits_read(state: Relay, read: CommitsRead) -> Next:
    """Begin a batch; what Kafka has already is listed and not produced."""
    if not read.message_ids:
        return on_nothing_to_do(state, read)
    entries = tuple(
        Entry(message_id, PUBLISHED_BEFORE if message_id in read.before else PUBLISHED)
        for message_id in read.message_ids
    )
    batch = _next_manifest(state, read.to, entries)
    return replace(state, batch=batch), (Begin(), Publish(batch))


def on_nothing_to_do(state: Relay, read: CommitsRead) -> Next:
    quiet = replace(state, failures=0)
    if state.signed_at is None:
        quiet = replace(quiet, signed_at=read.at)
    elif read.at - state.signed_at >= SIGN_OF_LIFE_SECONDS:
        batch = _next_manifest(state, state.at.position, ())
        return replace(quiet, batch=batch), (Begin(), PublishManifest(batch))
    quiet, saving = save_if_due(quiet, read.at)
    return quiet, (*saving, Rest(_until_next_save(quiet, read.at), until_commits=True))


def _next_manifest(state: Relay, to: Position, entries: tuple[Entry, ...]) -> Manifest:
    cursor = state.at
    return Manifest(
        installation=known(state.installation),
        shard=state.shard,
        gen=cursor.gen,
        kind=Kind.BATCH,
        batch_no=cursor.batch_no + 1,
        prev_crc=cursor.crc,
        after=cursor.position,
        to=to,
        entries=entries,
    )


def on_delivered(state: Relay, delivered: Delivered) -> Next:
    """Count the good reports ourselves: a transaction may commit with messages dropped."""
    batch = known(state.batch)
    if delivered.refused:
        return drop(state, "refused")
    if delivered.good != len(batch.published):
        return drop(state, "undelivered")
    return state, (PublishManifest(batch),)


def on_manifest_delivered(state: Relay, delivered: ManifestDelivered) -> Next:
    """A manifest below the last one lies in another log: its transaction must not commit."""
    cursor, batch = state.at, known(state.batch)
    if delivered.offset < cursor.manifest_offset:
        return drop(state, "manifest")
    candidate = Cursor(batch.to, delivered.offset + 1, batch.batch_no, delivered.crc, cursor.gen)
    return replace(state, candidate=candidate), (Commit(),)


def on_commit_ended(state: Relay, ended: CommitEnded) -> Next:
    """The CLEAN rule: only a commit that cannot have been sent twice lets the handle live."""
    if ended.seconds >= CLEAN_COMMIT_SECONDS:
        return drop(state, "slow_commit")
    done = replace(
        state,
        cursor=state.candidate,
        candidate=None,
        batch=None,
        failures=0,
        dirty=True,
        signed_at=ended.at,
    )
    done, saving = save_if_due(done, ended.at)
    return done, (*saving, Rest(0.0))


def save_if_due(state: Relay, at: float) -> Next:
    due = state.saved_at is None or at - state.saved_at >= PROGRESS_SECONDS
    if not (state.dirty and due):
        return state, ()
    saved = replace(state, dirty=False, saved_at=at)
    return saved, (SaveProgress(state.at, state.who),)


def _until_next_save(state: Relay, at: float) -> float:
    if not state.dirty or state.saved_at is None:
        return IDLE_SECONDS
    return min(IDLE_SECONDS, max(0.0, state.saved_at + PROGRESS_SECONDS - at))
