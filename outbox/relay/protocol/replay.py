"""FENCE and REPLAY: fence older producers, read the manifests back, compare, adopt or recover.

The fence comes first: a log that is read before the fence may still grow.
"""

from __future__ import annotations

from msgspec.structs import replace

from outbox.messages.manifest import HELD, START, Kind, Manifest, Position
from outbox.relay.protocol.actions import (
    Compare,
    DropHandle,
    Fence,
    MarkReleased,
    ReadBounds,
    ReadManifests,
    Recover,
)
from outbox.relay.protocol.answers import Bounds, Compared, Fenced, ManifestsRead, Marked, Recovered
from outbox.relay.protocol.delivery_mode import (
    begins_chain,
    enter_at_least_once,
    has_grown,
    leave_at_least_once,
)
from outbox.relay.protocol.settlement import on_nothing_read, settle
from outbox.relay.protocol.state import (
    NO_MANIFESTS,
    Cursor,
    Found,
    HaltReason,
    Phase,
    Relay,
    Visible,
    require,
)
from outbox.relay.protocol.transition import Next, halt


def on_fenced(state: Relay, _: Fenced) -> Next:
    """Read the log's end only now: no other producer can write to it any more."""
    return replace(state, phase=Phase.REPLAY), (ReadBounds(),)


def on_bounds(state: Relay, bounds: Bounds) -> Next:
    """Begin at the stored cursor; the log's end was read after the fence.

    In the mode at_least_once there are no manifests to read. The first start in it reads those of
    exactly_once, and so does a start with a row that was restored from a backup of that mode.
    """
    stored = bounds.progress.cursor if bounds.progress else None
    if stored is None and bounds.end > 0:
        return halt(state, HaltReason.CURSOR_MISSING)
    cursor = stored or Cursor(START, 0, 0, 0, 0)
    if not state.is_listing:
        if has_grown(cursor, bounds):
            return _enter_again(state)
        entered = enter_at_least_once(cursor, bounds.end)
        return settle(replace(state, cursor=entered, end=NO_MANIFESTS))
    if not cursor.is_listed:
        cursor = leave_at_least_once(cursor, bounds)
    if not cursor.is_listed:
        return settle(replace(state, cursor=cursor, end=bounds.end))
    cursor = _after_marker(cursor, bounds)
    if not bounds.start <= cursor.manifest_offset <= bounds.end:
        return halt(state, HaltReason.PROGRESS_LOST)
    return read_on(
        replace(
            state,
            cursor=cursor._replace(visible=_within(cursor, bounds)),
            end=bounds.end,
            found=(),
            reached=False,
            waited=0.0,
            differs=False,
        )
    )


def _enter_again(state: Relay) -> Next:
    """Enter at_least_once once more: exactly_once has published after the stored row."""
    entering = replace(state, phase=Phase.FENCE, entering=True)
    return entering, (DropHandle("delivery_mode"), Fence())


def _after_marker(cursor: Cursor, bounds: Bounds) -> Cursor:
    """Return the cursor at the end of a log of which everything has expired.

    The last manifest has the offset before the cursor, the marker of its transaction that of the
    cursor. A manifest at that offset would have left a marker, too, and the log would end later.
    """
    is_next = bounds.start == bounds.end == cursor.manifest_offset + 1
    return cursor._replace(manifest_offset=bounds.end) if is_next else cursor


def _within(cursor: Cursor, bounds: Bounds) -> Visible:
    """Return from where batches may be unseen; manifests that are gone were visible long ago."""
    batch_no, offset = cursor.visible
    return Visible(batch_no, min(max(offset, bounds.start), cursor.manifest_offset))


def read_on(state: Relay) -> Next:
    """Read the next manifests, or run when there are none."""
    cursor = state.at
    if cursor.manifest_offset == state.end:
        return settle(state)
    return state, (ReadManifests(cursor.manifest_offset, state.end),)


def on_manifests_read(state: Relay, read: ManifestsRead) -> Next:
    """Use the manifests read; none within the allowed time means a foreign transaction."""
    if not read.found and not read.reached:
        return on_nothing_read(replace(state, waited=state.waited + read.waited))
    return examine_next(replace(state, found=read.found, reached=read.reached, waited=0.0))


def examine_next(state: Relay) -> Next:
    """Check the next manifest that was read: its place in the chain, then its content."""
    if not state.found:
        return settle(state) if state.reached else read_on(state)
    found = state.found[0]
    broken = _broken(state, found)
    if broken is not None:
        return halt(state, broken)
    manifest = require(found.manifest)
    if state.differs:
        return _history(state)
    return state, (Compare(state.at.position, manifest),)


def _broken(state: Relay, found: Found) -> HaltReason | None:
    """Return what is wrong with a manifest's place in the chain, or None."""
    cursor, manifest = state.at, found.manifest
    if manifest is not None and manifest.installation != state.installation:
        return HaltReason.FOREIGN_MANIFEST
    in_chain = (
        manifest is not None
        and manifest.shard == state.shard
        and (follows(manifest, cursor) or begins_chain(manifest, cursor))
    )
    return None if in_chain else HaltReason.CHAIN_BROKEN


def follows(manifest: Manifest, cursor: Cursor) -> bool:
    """Return whether a manifest is the next of the cursor's chain."""
    return manifest.batch_no == cursor.batch_no + 1 and manifest.prev_crc == cursor.crc


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
    return passed, (MarkReleased(manifest, passed.at, passed.who),)


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


def on_marked(state: Relay, _: Marked) -> Next:
    """Continue after a release whose rows are marked."""
    return examine_next(state)


def _history(state: Relay) -> Next:
    """HISTORY: PostgreSQL lost its tail; store the batch there and keep the position."""
    found = state.found[0]
    moved = _past_first(state, state.at.position).at
    recover = Recover(require(found.manifest), found.offset, moved, state.who)
    return replace(state, differs=True), (recover,)


def on_recovered(state: Relay, _: Recovered) -> Next:
    """Continue after a batch that was just stored in PostgreSQL."""
    return examine_next(_past_first(state, state.at.position))


def _past_first(state: Relay, position: Position) -> Relay:
    found = state.found[0]
    manifest = require(found.manifest)
    gen = max(manifest.gen, state.at.gen)
    cursor = Cursor(position, found.offset + 1, manifest.batch_no, found.crc, gen, state.at.visible)
    return replace(state, cursor=cursor, found=state.found[1:])
