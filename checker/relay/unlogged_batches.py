"""The batches that Kafka has and ``publication_log`` has not: at most one second of them."""

from __future__ import annotations

from collections.abc import Sequence

from outbox.relay.protocol.answers import Delivered
from outbox.relay.protocol.state import Cursor


class UnloggedBatches:
    """Those of one owner. The last one is in doubt until the chain of manifests goes on."""

    def __init__(self) -> None:
        self._published: list[Delivered] = []
        self._doubtful: Delivered | None = None
        """The batch whose transaction may or may not be committed."""

    def doubt(self, batch: Delivered) -> None:
        """Add a batch whose transaction is open."""
        self._doubtful = batch

    def confirm(self, batch_no: int, crc: int) -> None:
        """Count the doubtful batch as published if the chain continues after it."""
        if self._doubtful is None:
            return
        manifest, delivery = self._doubtful
        if manifest.batch_no <= batch_no:
            if (manifest.batch_no, delivery.crc) == (batch_no, crc):
                self._published.append(self._doubtful)
            self._doubtful = None

    def until(self, cursor: Cursor) -> Sequence[Delivered]:
        """Return the batches to log with a cursor."""
        self.confirm(cursor.batch_no, cursor.crc)
        return tuple(self._published)

    def logged(self) -> None:
        """Forget the published batches."""
        self._published.clear()

    def lost(self) -> None:
        """Forget all batches: the shard may have another owner."""
        self._doubtful = None
        self._published.clear()
