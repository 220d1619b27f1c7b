"""The chain of a shard's manifests: each names the one before it."""

from __future__ import annotations

from outbox.messages.manifest import Entry, Kind, Manifest, Position
from outbox.relay.protocol.state import Cursor, Found, Relay, require


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
    )


def follows(manifest: Manifest, cursor: Cursor) -> bool:
    """Return whether a manifest is the next of the cursor's chain."""
    return manifest.batch_no == cursor.batch_no + 1 and manifest.prev_crc == cursor.crc


def past(cursor: Cursor, found: Found, position: Position) -> Cursor:
    """Return the cursor after a manifest of the chain."""
    manifest = require(found.manifest)
    gen = max(manifest.gen, cursor.gen)
    return Cursor(position, found.offset + 1, manifest.batch_no, found.crc, gen)
