"""What happens to Kafka without a relay: late EndTxn frames.

A late frame is the second copy of a commit, or the first one of a lost answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.scene import STALE_FRAME
from tests.model.stores.kafka import Broker, end_transaction


class Arrival(NamedTuple):
    """A late frame reaches the coordinator."""

    text: str
    broker: Broker
    reached: tuple[str, ...] = ()


def arrivals(broker: Broker) -> Iterator[Arrival]:
    """Yield what may happen; a frame of an older epoch is refused."""
    for number, each in enumerate(broker.ids):
        reached = (STALE_FRAME,) if each.open else ()
        if each.frame:
            ended = end_transaction(broker, number).with_id(number, frame=False)
            yield Arrival("a late EndTxn of the current epoch arrives", ended)
        if each.old_frame:
            refused = broker.with_id(number, old_frame=False)
            yield Arrival("a late EndTxn of an older epoch is refused", refused, reached)
