"""A standby that is read in place of its primary, once it has all that the cut needs.

A relay publishes what the primary has committed and so written to its log. Once the standby has
replayed the log up to where the primary had written it after the ends of Kafka were fixed, every
snapshot that is taken of it holds the decision of each record below those ends, as one of the
primary would.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Event
from time import monotonic
from typing import Any, Final

from outbox.errors import DatabaseUnavailable
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load

SQL: Final = load("outbox.postgres.sessions.standby")
REPLAY_SECONDS: Final = 60.0
"""How long a standby may take to replay what the primary has written; then there is no run."""
LOOK_SECONDS: Final = 0.1

_PAUSE: Final = Event()


class ReplicaUnfit(DatabaseUnavailable):
    """The replica cannot stand for the primary now: behind it, or no standby of it."""


def await_replay(
    primary: Connection,
    replica: Connection,
    seconds: float = REPLAY_SECONDS,
    pause: Callable[[float], object] = _PAUSE.wait,
) -> datetime:
    """Wait until a snapshot of the replica holds all that is committed now; return the time.

    The time is the primary's, which stamps the commits. Raises ReplicaUnfit.
    """
    _same_installation(primary, replica)
    written, at = _row(primary, "written")
    replayed = _reached(replica, written, seconds, pause)
    if not _row(primary, "holds", place=replayed)[0]:
        raise ReplicaUnfit(
            f"the replica has replayed up to {replayed}, which the primary has not written: it"
            " follows another history"
        )
    assert isinstance(at, datetime)
    return at


def _same_installation(primary: Connection, replica: Connection) -> None:
    (ours, _), (theirs, standby) = _row(primary, "server"), _row(replica, "server")
    if theirs != ours:
        raise ReplicaUnfit(f"the replica is of installation {theirs}, the primary is {ours}")
    if not standby:
        raise ReplicaUnfit("the replica is no standby: it follows nobody")


def _reached(
    replica: Connection, written: str, seconds: float, pause: Callable[[float], object]
) -> str:
    """Return up to where the replica has replayed, once that is at or beyond ``written``."""
    deadline = monotonic() + seconds
    while True:
        replayed, reached = _row(replica, "replayed", place=written)
        if reached:
            return str(replayed)
        if monotonic() >= deadline:
            raise ReplicaUnfit(
                f"the replica has replayed up to {replayed} and not, within {seconds:g} s, up to"
                f" {written}, which the primary had written"
            )
        pause(LOOK_SECONDS)


def _row(connection: Connection, name: str, **asked: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(SQL[name], asked).fetchone()
    assert row is not None
    return row
