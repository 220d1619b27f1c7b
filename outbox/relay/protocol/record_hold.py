"""Records that Kafka refuses: they are held with their scope, retried for ever, published in order.

The record that Kafka names is held at once. A batch is halved only if Kafka names none. A record
whose stored row is damaged is refused in the same way, by the relay itself.

A scope is (topic, key), or the topic if Kafka refuses all of it. While a scope has an open row in
``held_record``, each later message of the scope is listed as K and held too. So the order of a key
is kept. A release publishes rows in decision order; its scope is free once they are marked.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from outbox.messages.manifest import PUBLISHED, PUBLISHED_BEFORE, Entry, Kind
from outbox.relay.protocol.actions import (
    Action,
    DropHandle,
    HoldRecords,
    MarkReleased,
    Postpone,
    Publish,
    Rest,
)
from outbox.relay.protocol.answers import Commits, DeliveryReport
from outbox.relay.protocol.state import Phase, Relay, require
from outbox.relay.protocol.transition import (
    BACKOFF_FIRST_SECONDS,
    Next,
    narrowed,
    unsaved,
    without_handle,
)

RETRY_FIRST_SECONDS: Final = 5.0
RETRY_LAST_SECONDS: Final = 300.0
NOTHING_DUE_SECONDS: Final = 1.0
STORED_ROW_DAMAGED: Final = "STORED_ROW_DAMAGED"
"""The error of a record whose content has another digest than when it was prepared."""


def on_refused(state: Relay, delivered: DeliveryReport) -> Next:
    """Hold or postpone the record that Kafka refuses; halve the batch if that is not known."""
    batch, refusal = require(state.batch), require(delivered.refused)
    published = batch.published
    is_known = refusal.named or len(published) == 1
    if not is_known:
        return _dropped(narrowed(state, batch))
    if batch.kind is Kind.BATCH:
        held = tuple(published[place] for place in (refusal.place, *delivered.alike))
        return _dropped(replace(state, suspects=0), HoldRecords(batch, held, refusal))
    once_more = replace(state, release_suspects=0, released_last=True)
    return _dropped(once_more, Postpone(published[refusal.place], refusal))


def _dropped(state: Relay, *settling: Action) -> Next:
    """Drop the handle; this is no failure, because each refusal leaves fewer suspects."""
    dropped = replace(without_handle(state), phase=Phase.VERIFY)
    return dropped, (*unsaved(state), DropHandle("refused"), *settling, Rest(BACKOFF_FIRST_SECONDS))


def on_held_read(state: Relay, read: Commits) -> Next:
    """Begin a release: an empty range, and no record that Kafka already has."""
    if not read.message_ids:
        return replace(state, released_last=True), (Rest(NOTHING_DUE_SECONDS, until_commits=True),)
    entries = tuple(
        Entry(message_id, PUBLISHED_BEFORE if message_id in read.before else PUBLISHED)
        for message_id in read.message_ids
    )
    batch = state.next_manifest(read.kind, state.at.position, entries)
    return replace(state, batch=batch), (Publish(batch, apart=True),)


def on_release_committed(state: Relay) -> Next:
    """Mark the records of a committed release, in the transaction that moves the cursor."""
    batch = require(state.batch)
    done = replace(
        state,
        batch=None,
        dirty=False,
        saved_at=state.signed_at,
        released_last=True,
        release_suspects=max(0, state.release_suspects - len(batch.entries)),
    )
    return done, (MarkReleased(batch, state.at), Rest(0.0))
