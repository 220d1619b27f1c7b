"""Names what only Kafka has: recovery lists the ids, the records' headers say whose they are.

Apart from the relay's recovery, which waits for no data topic. Until an id is named, and where its
record is gone, an end that names it is answered as before: there is no such message. One checker at
a time; what was read and not stored is read again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from checker.maintenance.ports import AdvisoryLocks
from outbox.errors import KafkaUnavailable
from outbox.relay.ports import Orphans, RecordNames
from outbox.telemetry.events import Event, get_logger

BATCH: Final = 500
LOOK_SECONDS: Final = 5.0
KAFKA_AWAY_SECONDS: Final = 30.0


class OrphanNames:
    """One look at a time."""

    def __init__(self, orphans: Orphans, records: RecordNames, turns: AdvisoryLocks) -> None:
        self._orphans = orphans
        self._records = records
        self._turns = turns
        self._lost = False

    async def step(self) -> float:
        """Name the ids that were found first; return the seconds until the next look."""
        async with self._turns.turn("orphans") as held:
            sought = await self._orphans.unnamed(BATCH) if held else ()
            if not sought:
                return LOOK_SECONDS
            topics = await self._orphans.topics()
            try:
                named = await asyncio.to_thread(self._records.read, sought, topics)
            except KafkaUnavailable as error:
                self._note_lost(error)
                return KAFKA_AWAY_SECONDS
            self._lost = False
            await self._orphans.note(sought, named)
        return 0.0 if len(sought) == BATCH else LOOK_SECONDS

    def _note_lost(self, error: KafkaUnavailable) -> None:
        if not self._lost:
            get_logger().warning(
                Event.DEPENDENCY_LOST, dependency="kafka", chore="orphans", error=str(error)
            )
        self._lost = True
