"""Records that Kafka refuses: held with their scope, tried for ever, published in their order.

A scope is (topic, key), or the topic where Kafka refuses all of it. While a scope has an open row
in ``held_record``, each later message of it is listed as K and joins it there, so that key order
survives; a release publishes rows in decision order, and its scope is free once they are marked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from outbox.messages.manifest import PUBLISHED, PUBLISHED_BEFORE, Entry, Kind
from outbox.relay.protocol.actions import (
    Action,
    Begin,
    DropHandle,
    Hold,
    MarkReleased,
    Postpone,
    Publish,
    ReadHeld,
    Rest,
    SaveProgress,
)
from outbox.relay.protocol.answers import HeldRead
from outbox.relay.protocol.bisection import narrowed, passed
from outbox.relay.protocol.manifest_chain import next_manifest
from outbox.relay.protocol.state import WIDE, Phase, Refused, Relay, known
from outbox.relay.protocol.transition import BACKOFF_FIRST_SECONDS, Next, forgetful

RETRY_FIRST_SECONDS: Final = 5.0
RETRY_LAST_SECONDS: Final = 300.0
GONE_SECONDS: Final = 1.0


def on_refused(state: Relay, refused: Refused) -> Next:
    """Halve a refused batch; hold a record that was refused twice alone; postpone a held one."""
    batch = known(state.batch)
    if batch.kind is not Kind.BATCH:
        return _release_refused(state, refused)
    if batch.published == (state.narrowing.alone,):
        found = replace(state, narrowing=WIDE)
        return _dropped(found, Hold(batch, batch.published, refused))
    return _dropped(replace(state, narrowing=narrowed(batch)))


def _release_refused(state: Relay, refused: Refused) -> Next:
    batch = known(state.batch)
    if len(batch.published) > 1:
        return _dropped(replace(state, release_narrowing=narrowed(batch)))
    once_more = replace(state, release_narrowing=WIDE, released_last=True)
    return _dropped(once_more, Postpone(batch.published[0], refused))


def _dropped(state: Relay, *settling: Action) -> Next:
    """Forget the handle; no failure, since each refusal leaves less to suspect."""
    saving = (SaveProgress(state.at, state.who),) if state.dirty else ()
    dropped = replace(forgetful(state), phase=Phase.VERIFY)
    return dropped, (*saving, DropHandle("refused"), *settling, Rest(BACKOFF_FIRST_SECONDS))


def release(state: Relay) -> Next:
    """Try the held records that are due."""
    return state, (ReadHeld(state.at.position, state.release_narrowing.most),)


def on_held_read(state: Relay, read: HeldRead) -> Next:
    """Begin a release: an empty range, and no record that Kafka has already."""
    if not read.message_ids:
        return replace(state, released_last=True), (Rest(GONE_SECONDS, until_commits=True),)
    entries = tuple(
        Entry(message_id, PUBLISHED_BEFORE if message_id in read.before else PUBLISHED)
        for message_id in read.message_ids
    )
    batch = next_manifest(state, read.kind, state.at.position, entries)
    return replace(state, batch=batch), (Begin(), Publish(batch))


def released(state: Relay) -> Next:
    """Mark what a committed release published, in the transaction that moves the cursor past it."""
    batch = known(state.batch)
    done = replace(
        state,
        batch=None,
        dirty=False,
        saved_at=state.signed_at,
        released_last=True,
        release_narrowing=passed(state.release_narrowing, len(batch.entries)),
    )
    return done, (MarkReleased(batch, state.at, state.who), Rest(0.0))
