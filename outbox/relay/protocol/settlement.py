"""Before RUN: end what the fence left open, and read which of the last batches consumers see.

Some brokers close a transaction without telling a partition that has no leader just then. Its
records hang behind the last stable offset, and take the result of the next transaction of the shard
there: an abort loses them, and a commit shows aborted ones, which are published again. A fence that
succeeds proves nothing then.

So whatever of the shard is still open after a fence is ended by an abort: one record in a new
transaction, which the next fence aborts. Only then is a result final. A batch that consumers were
not known to see is read; messages that it lists and that are not there are published again, in
order, before anything new.

The shard's own manifest is the exception: an empty manifest is committed behind it. After the fence
no record of its transaction can arrive any more, so the reading says which of them are missing.
A manifest may also have been aborted though its records are visible: PostgreSQL learns these.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from outbox.messages.manifest import Kind
from outbox.relay.protocol.actions import (
    Action,
    Begin,
    DropHandle,
    Heal,
    OrderRepairs,
    Publish,
    ReadBounds,
    ReadCommits,
    ReadOpenManifests,
    Recover,
    Rest,
    SaveProgress,
    Settle,
    StoreHalt,
)
from outbox.relay.protocol.answers import BatchesSettled, CommitsRead, OpenManifestsRead
from outbox.relay.protocol.delivery_mode import begins_chain, enter_at_least_once
from outbox.relay.protocol.manifest_chain import next_manifest
from outbox.relay.protocol.state import (
    Cursor,
    Found,
    HaltReason,
    Phase,
    Relay,
    Visible,
    require,
)
from outbox.relay.protocol.transition import (
    Next,
    backoff_seconds,
    count_failure,
    without_handle,
)

UNPROVEN_SECONDS: Final = 4.0
"""The time between two readings while another program's transaction hides the last batches."""
OPEN_SECONDS: Final = 5.0
"""After this wait for manifests, the relay looks whether its own shard has left one open."""
STUCK_SECONDS: Final = 60.0
"""Longer than any transaction of the relay: a blocking one belongs to another program."""
STUCK_POLL_SECONDS: Final = 5.0


def settle(state: Relay) -> Next:
    """Settle the last batches, if the mode has manifests."""
    if not (state.is_listing and state.at.is_listed):
        return run(state, BatchesSettled((), (), proven=True))
    return state, (Settle(state.at.visible, state.end, state.at.position),)


def on_settled(state: Relay, settled: BatchesSettled) -> Next:
    """End what hangs, or go on; messages that are proven absent are published again first."""
    if settled.hanging:
        healing = count_failure(replace(without_handle(state), phase=Phase.VERIFY))
        rest = Rest(backoff_seconds(healing.failures))
        heal = (Begin(), Heal(settled.hanging), DropHandle("healed"), rest)
        return healing, (*_new_generation(state), *heal)
    if settled.doubtful or (state.entering and not settled.proven):
        return state, (Rest(UNPROVEN_SECONDS),)
    if state.phase is Phase.RUN:
        return _publish_again(replace(state, dirty=True), settled)
    return run(state, settled)


def _new_generation(state: Relay) -> tuple[Action, ...]:
    """Let no former owner store anything from here on.

    It would take the end of what hangs for the visibility of its last batch, which the abort hides.
    """
    if state.phase is Phase.RUN:
        return ()
    return (SaveProgress(state.at._replace(gen=state.at.gen + 1), state.who, begins=True),)


def run(state: Relay, settled: BatchesSettled) -> Next:
    """Start to publish under a new generation: everything below the end is known."""
    was = state.at
    cursor = was._replace(manifest_offset=state.end, gen=was.gen + 1)
    running = replace(
        state,
        phase=Phase.RUN,
        cursor=cursor,
        halt=None,
        found=(),
        batch=None,
        before=None if was.batch_no else (),
        dirty=False,
    )
    following, plan = _publish_again(running, settled)
    learned = not settled.absent and settled.known is None
    stored = following.at if learned else cursor
    begun = (SaveProgress(stored, state.who, begins=True), *plan)
    return _enter(following, begun[:-1]) if state.entering else (following, begun)


def _enter(state: Relay, plan: tuple[Action, ...]) -> Next:
    """Begin at_least_once with a handle of its own; what is absent is ordered before."""
    entered = SaveProgress(enter_at_least_once(state.at), state.who)
    entering = replace(without_handle(state), phase=Phase.VERIFY)
    return entering, (*plan, entered, DropHandle("delivery_mode"), Rest(0.0))


def _publish_again(state: Relay, settled: BatchesSettled) -> Next:
    """Order what is absent before anything new; the stored row counts it as visible only then."""
    cursor, absent, known = state.at, settled.absent, settled.known
    learning: tuple[Action, ...] = ()
    if known is not None:
        learning = (Recover(require(known.manifest), known.offset, cursor, state.who),)
    if settled.proven and cursor.is_listed:
        seen = Visible(cursor.batch_no, cursor.manifest_offset)
        cursor = cursor._replace(visible=seen)
    following = replace(
        state,
        cursor=cursor,
        unproven=not settled.proven,
        repairing=state.repairing or bool(absent),
        dirty=state.dirty or bool(absent) or known is not None,
    )
    ordering = (OrderRepairs(cursor.gen, absent, cursor.batch_no),) if absent else ()
    return following, (*learning, *ordering, ReadCommits(cursor.position, state.narrowing.most))


def note_visible(state: Relay, read: CommitsRead) -> Relay:
    """Move the visible batch of the cursor; not while older batches are unproven.

    If the log of a batch is gone, what became of the last batches is read from Kafka.
    """
    if read.is_gone:
        return replace(state, unproven=True)
    visible = read.visible
    if visible is None or state.unproven or visible <= state.at.visible:
        return state
    return replace(state, cursor=state.at._replace(visible=visible), dirty=True)


def is_settling_due(state: Relay, at: float) -> bool:
    """Return whether the last batches of the former owner are to be read once more."""
    last = state.settled_at
    return state.unproven and (last is None or at - last >= UNPROVEN_SECONDS)


def settle_again(state: Relay, at: float) -> Next:
    """Read again, while publishing goes on."""
    cursor = state.at
    again = Settle(cursor.visible, cursor.manifest_offset, cursor.position, patient=False)
    return replace(state, settled_at=at), (again,)


def on_nothing_read(state: Relay) -> Next:
    """Wait for manifests; look whether the shard itself, or another program, hides them."""
    if state.waited < OPEN_SECONDS:
        return state, (Rest(0.0),)
    return state, (ReadOpenManifests(state.end),)


def on_open_manifests_read(state: Relay, read: OpenManifestsRead) -> Next:
    """Commit an empty manifest behind one of the shard that hangs; wait for another program."""
    last = _last_of_chain(state, read.found)
    if last is not None:
        batch = next_manifest(replace(state, cursor=last), Kind.BATCH, last.position, ())
        return replace(state, batch=batch), (Begin(), Publish(batch))
    if state.waited < STUCK_SECONDS:
        return state, (Rest(0.0),)
    stuck = replace(state, halt=HaltReason.REPLAY_STUCK)
    return stuck, (StoreHalt(HaltReason.REPLAY_STUCK), Rest(STUCK_POLL_SECONDS))


def _last_of_chain(state: Relay, found: tuple[Found, ...]) -> Cursor | None:
    """Return the cursor after the open manifests; None if they do not continue the chain.

    The stored row may count one that hangs: it was saved after Kafka had acknowledged the batch.
    """
    cursor = state.at
    for offset, manifest, crc, _ in found:
        if manifest is None or (manifest.installation, manifest.shard) != (
            state.installation,
            state.shard,
        ):
            return None
        if offset < cursor.manifest_offset:
            continue
        follows = (manifest.batch_no, manifest.prev_crc) == (cursor.batch_no + 1, cursor.crc)
        if not (follows or begins_chain(manifest, cursor)):
            return None
        cursor = cursor._replace(
            position=manifest.to, manifest_offset=offset + 1, batch_no=manifest.batch_no, crc=crc
        )
    return cursor if found else None


def on_healed(state: Relay) -> Next:
    """Read the manifests from the stored cursor again, now that theirs has been committed."""
    return replace(state, batch=None, candidate=None, waited=0.0), (ReadBounds(),)
