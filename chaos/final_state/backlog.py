"""The backlog of a run: undecided halves, and commits that are not in Kafka yet."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final, NamedTuple

import psycopg

from outbox.errors import DatabaseUnavailable
from outbox.postgres.maintenance import gauges

UNFINISHED: Final = gauges.SQL["unfinished"]
EVERY: Final = {"most": 2**40}
"""Of each shard every message is read and counted."""
LOOK_SECONDS: Final = 0.25
CALM_LOOKS: Final = 2
GROUPS: Final = "chaos-"
"""begins the groups of a run; others have lived before it"""


class Backlog(NamedTuple):
    """Number of messages in each unfinished state."""

    prepared: int
    committed: int
    parked: int

    @property
    def done(self) -> bool:
        """Return whether no message waits for a decision or for its publication."""
        return self.prepared == 0 and self.committed == 0


def backlog(database_url: str) -> Backlog:
    """Read the backlog from PostgreSQL; raises DatabaseUnavailable."""
    try:
        with psycopg.connect(database_url, connect_timeout=3) as connection:
            rows = connection.execute(UNFINISHED, EVERY).fetchall()
    except psycopg.Error as error:
        raise DatabaseUnavailable(str(error)) from error
    counts = {"PREPARED": 0, "COMMITTED": 0, "PARKED": 0}
    for state, group, _, messages, *_ in rows:
        if not group.startswith(GROUPS):
            continue
        counts[state] = counts.get(state, 0) + int(messages)
    return Backlog(counts["PREPARED"], counts["COMMITTED"], counts["PARKED"])


def wait_drained(
    database_url: str, seconds: float, say: Callable[[str], None]
) -> tuple[Backlog, float]:
    """Wait for an empty backlog for at most ``seconds``; return the backlog and the time waited."""
    began, calm, stop = monotonic(), 0, threading.Event()
    left = Backlog(-1, -1, -1)
    while monotonic() - began < seconds and calm < CALM_LOOKS:
        try:
            left = backlog(database_url)
        except DatabaseUnavailable:
            calm = 0
        else:
            calm = calm + 1 if left.done else 0
            waited = f"{monotonic() - began:5.1f} s"
            say(f"{waited}  {left.prepared} undecided  {left.committed} unpublished")
        if calm < CALM_LOOKS:
            stop.wait(LOOK_SECONDS)
    return left, monotonic() - began
