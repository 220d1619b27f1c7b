"""The statements that count unfinished messages, up to a limit: a larger number is a lower bound.

What is read does not grow with what is open. Each delay class of a group, each group with parked
messages, each shard and each topic with held records has a share of the rows that are read. So few
messages of one are found beside very many of another.
"""

from __future__ import annotations

from typing import Final

from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
BOUNDS: Final = {"most": 10_000, "all": 16_000}
"""The most messages that are counted of one class, group, shard or topic, and of all of a state."""
OF_HALVES: Final = ("undecided", "unpublished", "held", "parked")
"""In the order in which a message goes through them: one that moves on meanwhile is not missed."""
PLAIN: Final = "plain"
