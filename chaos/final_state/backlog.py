"""The backlog of a run: undecided halves, commits that are not in Kafka yet, and held ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final, NamedTuple

import psycopg

LOOK_SECONDS: Final = 0.25
CALM_LOOKS: Final = 2
MOST_TIMES: Final = 10
"""A backlog that moves for this many times the limit, and is not empty, does not drain."""
_NEVER: Final = threading.Event()
BACKLOG: Final = """
SELECT (SELECT count(*) FROM outbox.half_message h
            WHERE NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = h.half_id)
            AND NOT EXISTS (SELECT FROM outbox.parked_message p
                WHERE p.half_id = coalesce(h.leader_id, h.half_id))),
    (SELECT count(*) FROM outbox.commit_log c
        LEFT JOIN outbox.progress p ON p.name = 'relay:' || c.shard
        WHERE p.name IS NULL OR (c.xid, cardinality(c.half_ids)) > (p.position, p.position_n)),
    (SELECT count(*) FROM outbox.held_record WHERE released_at IS NULL AND dropped_at IS NULL)
"""


class Backlog(NamedTuple):
    """The number of undecided and of held messages, and of commits that are not published."""

    undecided: int
    unpublished: int
    held: int


UNREAD: Final = Backlog(-1, -1, -1)


def readable_backlog(database_url: str) -> Backlog | None:
    """Return the backlog, None while PostgreSQL is away."""
    try:
        with psycopg.connect(database_url, connect_timeout=3) as connection:
            row = connection.execute(BACKLOG.encode()).fetchone()
    except psycopg.Error:
        return None
    assert row is not None
    return Backlog(*row)


def wait_drained(
    look: Callable[[], Backlog | None], seconds: float, say: Callable[[str], None]
) -> Backlog:
    """Wait for an empty backlog; return the last one that was read.

    The wait ends when nothing has moved for ``seconds``: how fast a backlog drains depends on the
    machine, and is no promise.
    """
    began = moved = monotonic()
    left, calm = UNREAD, 0
    while calm < CALM_LOOKS and monotonic() - moved < seconds:
        found = look()
        if found is not None and found != left:
            left, moved = found, monotonic()
        calm = calm + 1 if found is not None and not any(found) else 0
        say(f"{monotonic() - began:5.1f} s  {found or 'PostgreSQL does not answer'}")
        if monotonic() - began > MOST_TIMES * seconds:
            break
        _NEVER.wait(LOOK_SECONDS)
    return left
