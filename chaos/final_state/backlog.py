"""The backlog of a run: undecided halves, commits that are not in Kafka yet, and held ones."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Final, NamedTuple

import psycopg

from outbox.errors import DatabaseUnavailable
from outbox.postgres.maintenance.unfinished_count import OF_HALVES
from outbox.postgres.maintenance.unfinished_count import SQL as UNFINISHED

EVERY: Final = {"most": 2**40, "all": 2**44}
"""Every message is read and counted."""
LOOK_SECONDS: Final = 0.25
CALM_LOOKS: Final = 2
MOST_TIMES: Final = 10
"""A backlog that moves for so many times the limit, and is not empty, does not drain."""
_NEVER: Final = threading.Event()
GROUPS: Final = "chaos-"
"""begins the groups of a run; others have lived before it"""


class Backlog(NamedTuple):
    """Number of messages in each unfinished state."""

    prepared: int
    committed: int
    parked: int
    held: int

    @property
    def done(self) -> bool:
        """Return whether no message waits for a decision or for its publication."""
        return self.prepared == self.committed == self.held == 0


UNREAD: Final = Backlog(-1, -1, -1, -1)


def backlog(database_url: str) -> Backlog:
    """Read the backlog from PostgreSQL; raises DatabaseUnavailable."""
    try:
        with psycopg.connect(database_url, connect_timeout=3) as connection:
            rows = [
                row
                for name in OF_HALVES
                for row in connection.execute(UNFINISHED[name], EVERY).fetchall()
            ]
    except psycopg.Error as error:
        raise DatabaseUnavailable(str(error)) from error
    counts = Counter[str]()
    for state, group, _, messages, *_ in rows:
        if group.startswith(GROUPS):
            counts[state] += int(messages)
    return Backlog(*(counts[name.upper()] for name in Backlog._fields))


def readable_backlog(database_url: str) -> Backlog | None:
    """Return the backlog, None while PostgreSQL is away."""
    try:
        return backlog(database_url)
    except DatabaseUnavailable:
        return None


def wait_drained(
    look: Callable[[], Backlog | None],
    seconds: float,
    say: Callable[[str], None],
    pause_seconds: float = LOOK_SECONDS,
) -> tuple[Backlog, float]:
    """Wait for an empty backlog; return the last that ``look`` returned, and the time waited.

    The wait ends when nothing has moved in all looks of ``seconds``: how fast a backlog drains
    depends on the machine, and is no promise.
    """
    began, left, still, calm = monotonic(), UNREAD, 0, 0
    most = round(seconds / LOOK_SECONDS)
    for _ in range(MOST_TIMES * most):
        found = look()
        still = still + 1 if found is None or found == left else 0
        calm = calm + 1 if found is not None and found.done else 0
        left = left if found is None else found
        say(f"{monotonic() - began:5.1f} s  {_words(found)}")
        if calm == CALM_LOOKS or still == most:
            break
        _NEVER.wait(pause_seconds)
    return left, monotonic() - began


def _words(found: Backlog | None) -> str:
    if found is None:
        return "PostgreSQL does not answer"
    return f"{found.prepared} undecided  {found.committed} unpublished  {found.held} held"
