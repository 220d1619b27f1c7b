"""A run: the node is killed at each point in turn, the last life is clean, then all is verified."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from outbox.failpoints import POINTS
from tests.fixtures_waiting import wait_for
from tests.integration.failpoints.fixtures_environment import CrashEnvironment
from tests.integration.failpoints.fixtures_invariants import verify
from tests.integration.failpoints.fixtures_node import program_of
from tests.integration.failpoints.fixtures_traffic import Traffic

LOST_TAIL = frozenset({"relay.after_history_chunk"})
"""It needs a PostgreSQL that has lost commits: test_recovery.py kills at it."""
RETIRE = frozenset(point for point in POINTS if point.startswith("retire."))
"""These points need a leaf whose retention is over: test_retention.py kills at them."""
LEAVES = frozenset(point for point in POINTS if point.startswith("leaves."))
"""They need many rows without a leaf: test_interrupted_copy.py kills at them."""
SQL_MODE = tuple(sorted(point for point in POINTS if point.startswith("plain.")))
"""The checker passes these points, and the API too before an end: both are killed."""
KILL_POINTS = tuple(sorted(POINTS - LOST_TAIL - RETIRE - LEAVES))
HELD = frozenset(
    {
        "relay.after_hold",
        "relay.after_held_select",
        "relay.after_postpone",
        "relay.after_release_mark",
    }
)
COMMITTED_BATCH = "relay.after_commit"
"""A kill here leaves a batch in Kafka that is not in the progress row."""
DEATH_SECONDS = 45.0
"""For the start of a program on a slow machine, too."""
TRIES = 4
_RUNS = count()


def run(environment: CrashEnvironment, points: Sequence[str]) -> int:
    """Kill the node at each point under traffic and verify; return the number of messages."""
    before = environment.newest_half()
    in_sql = environment.publish_in_sql(any(point in SQL_MODE for point in points))
    traffic = Traffic(environment.node.url, f"run{next(_RUNS)}", environment.topics, in_sql)
    traffic.start()
    try:
        lives = [COMMITTED_BATCH, *points] if "relay.after_replay" in points else points
        for point in lives:
            _die_at(environment, traffic, point)
        environment.node.start()
        traffic.finish()
        _settle(environment)
        traffic.repeat()
        return verify(environment, traffic, before, crashes=len(lives))
    finally:
        traffic.abandon()
        environment.node.kill()


def _die_at(environment: CrashEnvironment, traffic: Traffic, point: str) -> None:
    """Run until the point kills its program, then kill the other one.

    It is partly chance whether a point is reached, so a life that does not reach it is repeated.
    """
    if point in HELD:
        environment.lower()
        traffic.large.set()
    for last in (number == TRIES - 1 for number in range(TRIES)):
        environment.node.start(f"{point}=kill#1")
        try:
            wait_for(lambda: _is_dead(environment, point), seconds=DEATH_SECONDS)
        except AssertionError:
            assert not last, f"no program reached {point}"
            continue
        finally:
            environment.node.kill()
        break
    traffic.large.clear()


def _is_dead(environment: CrashEnvironment, point: str) -> bool:
    if point in HELD:
        if point == "relay.after_release_mark" and environment.held():
            environment.raise_again()
        environment.try_held_now()
    return environment.node.is_dead(program_of(point))


def _settle(environment: CrashEnvironment) -> None:
    """Wait until every half is decided and Kafka has accepted what it refused before."""
    environment.raise_again()

    def settled() -> bool:
        environment.try_held_now()
        return (
            not environment.undecided()
            and not environment.held()
            and not environment.waiting_in_sql()
        )

    wait_for(settled, seconds=90)
