"""Committed messages of a shard."""

from __future__ import annotations

from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import Committed, digest_in, record_of

SHARD = 3


def message_of(xid: int) -> Committed:
    """Return the one message of a transaction."""
    half_id = HalfId(xid << 15 | SHARD)
    made = Committed(
        *(half_id, Nonce(7), "producer", "billing", None, "invoices", None, b"v", None),
        *(None, None, (), 0),
    )
    return made._replace(content_digest=digest_in(record_of(made, "")))
