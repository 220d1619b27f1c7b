"""The delivery modes and the change between them: only exactly_once lists its batches in manifests.

The manifest offset marks a cursor of the mode at_least_once. This mode moves its position after
Kafka's acknowledgements alone. So a crash repeats what was published since the row was stored: up
to one second of records. Relays are stopped while the mode is changed.

The offset of the visible batches stays where the manifests ended when the mode began: it writes
none. So manifests at or after it are of exactly_once again, and the row was restored from a backup.
Then they are read, whichever mode goes on.
"""

from __future__ import annotations

from outbox.messages.manifest import Manifest
from outbox.relay.protocol.answers import Bounds
from outbox.relay.protocol.state import NO_MANIFESTS, Cursor, Visible


def enter_at_least_once(settled: Cursor, end: int = NO_MANIFESTS) -> Cursor:
    """Continue after the last batch of exactly_once, which consumers see.

    A row of a version that kept no offset takes the log's end.
    """
    known = settled.visible.offset != NO_MANIFESTS
    visible = settled.visible if known else Visible(settled.batch_no, end)
    return settled._replace(manifest_offset=NO_MANIFESTS, visible=visible)


def has_grown(stored: Cursor, bounds: Bounds) -> bool:
    """Return whether the log does not end where the row of at_least_once knows its end."""
    return stored.visible.offset not in (NO_MANIFESTS, bounds.end)


def leave_at_least_once(stored: Cursor, bounds: Bounds) -> Cursor:
    """Start a new chain of manifests: no manifest lists the batches of at_least_once.

    The cursor gets a manifest offset only if there is something to read, or if that is lost.
    """
    started = stored._replace(crc=0)
    if not has_grown(stored, bounds):
        return started
    ended = stored.visible.offset
    return started._replace(manifest_offset=ended, visible=Visible(stored.batch_no, ended))


def begins_chain(manifest: Manifest, cursor: Cursor) -> bool:
    """Return whether a manifest is the first after the mode; the row may be of before its end.

    Nothing names the last manifest before the mode, as at the end of a log. What its transaction
    leaves behind is read before anything is published.
    """
    return manifest.prev_crc == 0 and manifest.batch_no > cursor.batch_no
