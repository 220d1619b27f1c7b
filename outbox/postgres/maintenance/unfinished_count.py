"""The statements that count unfinished messages, up to a limit: a larger number is a lower bound.

What is read does not grow with what is open. Each delay class of a group, each group with parked
messages, each shard and each topic with held records has a share of the rows that are read. So few
messages of one are found beside very many of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
BOUNDS: Final = {"most": 10_000, "all": 16_000}
"""The most messages that are counted of one class, group, shard or topic, and of all of a state."""
OF_HALVES: Final = ("undecided", "unpublished", "held", "parked")
"""In the order in which a message goes through them: one that moves on meanwhile is not missed."""
PLAIN: Final = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """How many messages of a group and topic are in a state, and the age of the oldest in seconds.

    ``capped``: there are more than were counted.

    Two are not states of a half message: ``HELD`` is COMMITTED and refused by Kafka, ``PLAIN``
    counts rows that will become one (SQL mode).
    """

    state: str
    producer_group: str
    topic: str
    messages: int
    capped: bool
    oldest_age_seconds: float
    check_interval_seconds: int
