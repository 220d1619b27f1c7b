"""What happens to Kafka without a relay: late EndTxn frames, and a deletion of the data topic.

A late frame is the second copy of a commit, or the first one of a lost answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.scene import STALE_FRAME, Fault
from tests.model.stores.kafka import Broker, end_transaction, replace_topic


class Arrival(NamedTuple):
    """A late frame reaches the coordinator, or an operator's command does."""

    text: str
    broker: Broker
    reached: tuple[str, ...] = ()
    cost: Fault | None = None


def arrivals(broker: Broker) -> Iterator[Arrival]:
    """Yield what may happen; a frame of an older epoch is refused."""
    reached = (STALE_FRAME,) if broker.open else ()
    if broker.frame:
        ended = end_transaction(broker)._replace(frame=False)
        yield Arrival("a late EndTxn of the current epoch arrives", ended)
    if broker.old_frame:
        refused = broker._replace(old_frame=False)
        yield Arrival("a late EndTxn of an older epoch is refused", refused, reached)
    replaced = replace_topic(broker)
    if replaced != broker:
        text = "the data topic is deleted and created again"
        yield Arrival(text, replaced, cost=Fault.GONE)
