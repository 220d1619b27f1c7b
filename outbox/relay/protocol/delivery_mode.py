"""The delivery modes and the change between them: only exactly_once lists its batches in manifests.

The manifest offset marks a cursor of the mode at_least_once. This mode moves its position after
Kafka's acknowledgements alone. So a crash repeats what was published since the row was stored: up
to one second of records. Relays are stopped while the mode is changed.
"""

from __future__ import annotations

from outbox.relay.protocol.state import NO_MANIFESTS, Cursor


def enter_at_least_once(settled: Cursor) -> Cursor:
    """Continue after the last batch of exactly_once, which consumers see."""
    return settled._replace(manifest_offset=NO_MANIFESTS)


def leave_at_least_once(stored: Cursor) -> Cursor:
    """Start a new chain of manifests: no manifest lists the batches of at_least_once."""
    return stored._replace(crc=0)
