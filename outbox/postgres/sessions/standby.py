"""A standby that is read instead of its primary, once it has all that the cut needs.

A relay publishes what the primary has committed, and so has written to its log. We read the
primary's log position after the end offsets of Kafka were fixed. Once the standby has replayed up
to that position, each snapshot of it has the decision of every record below those offsets. A
snapshot of the primary would show the same.
"""

from __future__ import annotations

from datetime import datetime
from threading import Event
from time import monotonic
from typing import Any, Final

from outbox.errors import DatabaseUnavailable
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
REPLAY_SECONDS: Final = 60.0
"""How long a standby may take to replay what the primary has written; after that the run fails."""
POLL_SECONDS: Final = 0.1

_PAUSE: Final = Event()


def await_replay(
    primary: Connection,
    replica: Connection,
    seconds: float = REPLAY_SECONDS,
) -> datetime:
    """Wait until a snapshot of the replica has all that is committed now; return the time.

    The time is from the primary, whose clock also stamps the commits. Raises DatabaseUnavailable
    if the replica cannot replace it now: it is behind, or is not a standby of it.
    """
    _check_same_installation(primary, replica)
    written, at = _row(primary, "written")
    replayed = _wait_until_replayed(replica, written, seconds)
    if not _row(primary, "holds", place=replayed)[0]:
        raise DatabaseUnavailable(
            f"the replica has replayed up to {replayed}, which the primary has not written: it"
            " follows another history"
        )
    assert isinstance(at, datetime)
    return at


def _check_same_installation(primary: Connection, replica: Connection) -> None:
    (of_primary, _), (of_replica, standby) = _row(primary, "server"), _row(replica, "server")
    if of_replica != of_primary:
        raise DatabaseUnavailable(
            f"the replica has system identifier {of_replica}, the primary {of_primary}"
        )
    if not standby:
        raise DatabaseUnavailable("the replica is not a standby: it replays no log")


def _wait_until_replayed(replica: Connection, written: str, seconds: float) -> str:
    """Return the replica's replay position, once it is at or after ``written``."""
    deadline = monotonic() + seconds
    while True:
        replayed, reached = _row(replica, "replayed", place=written)
        if reached:
            return str(replayed)
        if monotonic() >= deadline:
            raise DatabaseUnavailable(
                f"after {seconds:g} s the replica has replayed up to {replayed}, not up to"
                f" {written}, which the primary had written"
            )
        _PAUSE.wait(POLL_SECONDS)


def _row(connection: Connection, name: str, **asked: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(SQL[name], asked).fetchone()
    assert row is not None
    return row
