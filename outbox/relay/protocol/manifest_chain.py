"""The manifest that comes next in a shard's chain."""

from __future__ import annotations

from outbox.messages.manifest import Entry, Kind, Manifest, Position
from outbox.relay.protocol.state import Relay, require


def next_manifest(state: Relay, kind: Kind, to: Position, entries: tuple[Entry, ...]) -> Manifest:
    """Return the manifest of the next batch, from the cursor's position up to ``to``."""
    cursor = state.at
    return Manifest(
        installation=require(state.installation),
        shard=state.shard,
        gen=cursor.gen,
        kind=kind,
        batch_no=cursor.batch_no + 1,
        prev_crc=cursor.crc,
        after=cursor.position,
        to=to,
        entries=entries,
        before=state.before,
    )
