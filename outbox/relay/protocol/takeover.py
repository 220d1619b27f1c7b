"""IDLE to REPLAY: takes a shard over, and brings PostgreSQL and Kafka together before it publishes.

It checks that both stores are the known ones, fences older producers, reads the manifests back,
compares, and adopts or recovers. The fence comes before the log: until then the log may grow.

A partition that stays away keeps the transaction that it is in from ending, and with it the
transactional id. An owner leaves such an id for the next one, so the rest of its shard goes on.
That is safe: it was the last that fenced the id, no handle of it is left, and what a commit of its
own still makes visible is below the log's end, where REPLAY waits for it. A relay that fenced the
old id meanwhile finds a later number with the bounds, or another generation when it begins. The
manifests have the number too, so a copy or a backup of the database learns it from them.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from outbox.messages.manifest import HELD, START, Kind, Manifest, Position
from outbox.messages.message_id import SHARDS
from outbox.relay.protocol.actions import (
    Compare,
    Fence,
    IdentifyStores,
    MarkReleased,
    ReadBounds,
    ReadCommits,
    ReadManifests,
    Recover,
    Rest,
    SaveProgress,
    StoreHalt,
)
from outbox.relay.protocol.answers import (
    Bounds,
    Compared,
    Fenced,
    LockBusy,
    LockTaken,
    ManifestsRead,
    Stored,
    StoresIdentified,
)
from outbox.relay.protocol.state import (
    Cursor,
    Found,
    HaltReason,
    Phase,
    Progress,
    Relay,
    first_gen,
    number_of,
    require,
)
from outbox.relay.protocol.transition import HALT_POLL_SECONDS, LEFT, Next, drop, halt, most_of

LOCK_RETRY_SECONDS: Final = 0.5
"""The poll interval of a standby; it replaces a killed owner well within 3 s."""
FENCE_SECONDS: Final = 10.0
"""Two of them and the back-off are shorter than the time in which an owner gives signs of life."""
OWN_SECONDS: Final = 5.0
"""Longer than a healthy Kafka needs to end a transaction."""
STUCK_SECONDS: Final = 60.0
"""Longer than any transaction of the relay: a blocking one belongs to another program."""
STUCK_POLL_SECONDS: Final = 5.0


def on_lock_busy(state: Relay, _: LockBusy) -> Next:
    """Wait for the owner; PostgreSQL ends the session of a frozen one."""
    return state, (Rest(LOCK_RETRY_SECONDS),)


def on_lock_taken(state: Relay, _: LockTaken) -> Next:
    """Identify both stores before any change to one.

    Nothing is kept of the transactional ids: PostgreSQL may have lost what an earlier session saw.
    """
    return replace(state, phase=Phase.VERIFY, number=0), (IdentifyStores(),)


def on_stores_identified(state: Relay, stores: StoresIdentified) -> Next:
    """Fence only if no unresolved halt is stored and both stores are the known ones."""
    stored = stores.progress.halt if stores.progress else None
    if stored is not None and stored is not HaltReason.REPLAY_STUCK:
        return replace(state, phase=Phase.HALT, halt=stored), (Rest(HALT_POLL_SECONDS),)
    difference = _difference(stores)
    if difference is not None:
        return halt(state, difference)
    verified = replace(
        state,
        phase=Phase.FENCE,
        halt=None,
        installation=stores.installation,
        identity=stores.identity,
        number=max(state.number, _number_in(stores.progress)),
    )
    return fence(verified)


def _number_in(progress: Progress | None) -> int:
    return progress.cursor.number if progress and progress.cursor else 0


def fence(state: Relay) -> Next:
    """Fence; an owner waits less long, because it can leave the id."""
    return state, (Fence(state.number, FENCE_SECONDS if state.owned is None else OWN_SECONDS),)


def _difference(stores: StoresIdentified) -> HaltReason | None:
    """Return the store that differs from the known one, before any fence."""
    now, before = stores.identity, stores.progress and stores.progress.identity
    if stores.partitions < SHARDS:
        return HaltReason.TOPIC_CHANGED
    if before is None or before == now:
        return None
    if before.cluster_id != now.cluster_id:
        return HaltReason.CLUSTER_CHANGED
    if before.topic_id != now.topic_id:
        return HaltReason.TOPIC_CHANGED
    return HaltReason.DATABASE_CHANGED


def on_fenced(state: Relay, _: Fenced) -> Next:
    """Read the log's end only now: no other producer can write to it any more."""
    return replace(state, phase=Phase.REPLAY), (ReadBounds(),)


def on_bounds(state: Relay, bounds: Bounds) -> Next:
    """Begin at the stored cursor; the log's end was read after the fence."""
    stored = bounds.progress.cursor if bounds.progress else None
    if _number_in(bounds.progress) > state.number:
        return drop(state, LEFT)
    if stored is None and bounds.end > 0:
        return halt(state, HaltReason.CURSOR_MISSING)
    cursor = _after_marker(stored or Cursor(START, 0, 0, 0, 0), bounds)
    if not bounds.start <= cursor.manifest_offset <= bounds.end:
        return halt(state, HaltReason.PROGRESS_LOST)
    return read_on(replace(state, cursor=cursor, end=bounds.end))


def _after_marker(cursor: Cursor, bounds: Bounds) -> Cursor:
    """Return the cursor at the end of a log whose records have all expired.

    The last manifest has the offset before the cursor, the marker of its transaction that of the
    cursor. A manifest at that offset would have left a marker, too, and the log would end later.
    """
    is_next = bounds.start == bounds.end == cursor.manifest_offset + 1
    return cursor._replace(manifest_offset=bounds.end) if is_next else cursor


def read_on(state: Relay) -> Next:
    """Read the next manifests, or run when there are none."""
    first = state.at.manifest_offset
    if first == state.end:
        return run(state)
    return state, (ReadManifests(first, state.end),)


def on_manifests_read(state: Relay, read: ManifestsRead) -> Next:
    """Use the manifests read; none within the allowed time means a foreign transaction."""
    if not read.found and not read.reached:
        return _wait_for_manifests(replace(state, waited=state.waited + read.waited))
    return examine_next(replace(state, found=read.found, reached=read.reached, waited=0.0))


def _wait_for_manifests(state: Relay) -> Next:
    """Wait for the foreign transaction that hides them; after a minute an operator has to act."""
    if state.waited < STUCK_SECONDS:
        return state, (Rest(0.0),)
    stuck = replace(state, halt=HaltReason.REPLAY_STUCK)
    return stuck, (StoreHalt(HaltReason.REPLAY_STUCK), Rest(STUCK_POLL_SECONDS))


def examine_next(state: Relay) -> Next:
    """Check the next manifest that was read: its place in the chain, then its content."""
    if not state.found:
        return run(state) if state.reached else read_on(state)
    found = state.found[0]
    broken = _broken(state, found)
    if broken is not None:
        return halt(state, broken)
    manifest = require(found.manifest)
    if number_of(manifest.gen) > state.number:
        return drop(replace(state, number=number_of(manifest.gen)), LEFT)
    if state.differs:
        return _history(state)
    return state, (Compare(state.at.position, manifest),)


def _broken(state: Relay, found: Found) -> HaltReason | None:
    """Return what is wrong with a manifest's place in the chain, or None."""
    manifest = found.manifest
    if manifest is None:
        return HaltReason.CHAIN_BROKEN
    if manifest.installation != state.installation:
        return HaltReason.FOREIGN_MANIFEST
    place = (manifest.shard, manifest.batch_no, manifest.prev_crc)
    follows = place == (state.shard, state.at.batch_no + 1, state.at.crc)
    return None if follows else HaltReason.CHAIN_BROKEN


def on_compared(state: Relay, compared: Compared) -> Next:
    """FAST: continue if the commit log has exactly the manifest's messages in its range.

    A release has no range, but its rows may be unmarked: its owner may have died before that.
    """
    manifest = require(state.found[0].manifest)
    if not _same(state, manifest, compared):
        return _history(state)
    passed = _past_first(state, manifest.to)
    if manifest.kind is Kind.BATCH:
        return examine_next(passed)
    return passed, (MarkReleased(manifest, passed.at),)


def _same(state: Relay, manifest: Manifest, compared: Compared) -> bool:
    is_batch = manifest.kind is Kind.BATCH
    ids = tuple(entry.message_id for entry in manifest.entries)
    held = (e.message_id for e in manifest.entries if e.status == HELD or not is_batch)
    return (
        compared.below_watermark
        and manifest.after == state.at.position
        and compared.message_ids == (ids if is_batch else ())
        and compared.held.issuperset(held)
    )


def _history(state: Relay) -> Next:
    """HISTORY: PostgreSQL lost its tail; store the batch there and keep the position."""
    found = state.found[0]
    passed = replace(_past_first(state, state.at.position), differs=True)
    return passed, (Recover(require(found.manifest), found.offset, passed.at),)


def on_stored(state: Relay, _: Stored) -> Next:
    """Continue after a batch was stored in PostgreSQL, or the rows of a release were marked."""
    return examine_next(state)


def _past_first(state: Relay, position: Position) -> Relay:
    """Move the cursor behind the first manifest that was read."""
    found, manifest = state.found[0], require(state.found[0].manifest)
    gen = max(manifest.gen, state.at.gen)
    cursor = Cursor(position, found.offset + 1, manifest.batch_no, found.crc, gen)
    return replace(state, cursor=cursor, found=state.found[1:])


def run(state: Relay) -> Next:
    """Start to publish under a new generation: everything below the end is known."""
    gen = max(state.at.gen, first_gen(state.number)) + 1
    cursor = state.at._replace(manifest_offset=state.end, gen=gen)
    running = replace(state, phase=Phase.RUN, cursor=cursor, halt=None, owned=cursor.gen)
    begun = SaveProgress(cursor, begins=True)
    return running, (begun, ReadCommits(cursor.position, most_of(state.suspects)))
