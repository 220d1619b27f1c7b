"""The two lanes, and the way from one to the other: exactly_once lists each batch, the other none.

A cursor of the lane at_least_once is marked by its manifest offset. The lane moves its position
after Kafka's acknowledgements alone, so a crash repeats what was published since the row was
stored: up to a second of records. Relays are stopped while the lane is changed.
"""

from __future__ import annotations

from outbox.relay.protocol.state import NO_MANIFESTS, Cursor


def enter_at_least_once(stored: Cursor, end: int) -> Cursor:
    """Go on from the stored position; ``end`` is where the shard's manifest log ends.

    Manifests that the row does not know take an offset each, so no number of theirs comes again.
    """
    if stored.manifest_offset == NO_MANIFESTS:
        return stored
    unread = max(0, end - stored.manifest_offset)
    return stored._replace(manifest_offset=NO_MANIFESTS, batch_no=stored.batch_no + unread)


def leave_at_least_once(stored: Cursor) -> Cursor:
    """Begin a chain of manifests anew: no manifest tells of the lane's batches."""
    return stored._replace(crc=0)
