"""A run: the node dies at one point after another, the last life is clean, then all must hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from outbox.failpoints import POINTS
from tests.fixtures_waiting import wait_for
from tests.integration.failpoints.fixtures_ground import Ground
from tests.integration.failpoints.fixtures_invariants import verify
from tests.integration.failpoints.fixtures_node import program_of
from tests.integration.failpoints.fixtures_traffic import Traffic

UNPROVOKED = frozenset({"relay.after_history_chunk"})
"""PostgreSQL must lose its tail first, so that acknowledged facts are gone: not this traffic's."""
RETIRE = frozenset(point for point in POINTS if point.startswith("retire."))
"""A leaf must be past its retention first: test_retire.py dies at these."""
PLAIN = tuple(sorted(point for point in POINTS if point.startswith("plain.")))
"""Passed by the checker and, on its way to an end, by the API: both die."""
HERE = tuple(sorted(POINTS - UNPROVOKED - RETIRE))
HELD = frozenset(
    {
        "relay.after_hold",
        "relay.after_held_select",
        "relay.after_postpone",
        "relay.after_release_mark",
    }
)
LEAVES_A_MANIFEST = "relay.after_commit"
"""Who dies here leaves a batch in Kafka that its progress row does not know."""
DEATH_SECONDS = 20.0
TRIES = 4
_RUNS = count()


def run(ground: Ground, points: Sequence[str]) -> int:
    """Kill the node at each point in turn under traffic and judge; return how many messages."""
    before = ground.newest_half()
    in_sql = ground.publish_in_sql(any(point in PLAIN for point in points))
    traffic = Traffic(ground.node.url, f"run{next(_RUNS)}", ground.topics, in_sql)
    traffic.start()
    try:
        lives = [LEAVES_A_MANIFEST, *points] if "relay.after_replay" in points else points
        for point in lives:
            _die_at(ground, traffic, point)
        ground.node.start()
        traffic.finish()
        _settle(ground)
        traffic.repeat()
        return verify(ground, traffic, before, crashes=len(lives))
    finally:
        traffic.abandon()
        ground.node.kill()


def _die_at(ground: Ground, traffic: Traffic, point: str) -> None:
    """Live until the point kills its program, then kill the other one.

    What leads to a point is partly chance, so a life that does not come to it is begun again.
    """
    if point in HELD:
        ground.lower()
        traffic.large.set()
    for last in (number == TRIES - 1 for number in range(TRIES)):
        ground.node.start(f"{point}=kill#1")
        try:
            wait_for(lambda: _is_dead(ground, point), seconds=DEATH_SECONDS)
        except AssertionError:
            assert not last, f"nobody came to {point}"
            continue
        finally:
            ground.node.kill()
        break
    traffic.large.clear()


def _is_dead(ground: Ground, point: str) -> bool:
    if point in HELD:
        if point == "relay.after_release_mark" and ground.held():
            ground.raise_again()
        ground.try_held_now()
    return ground.node.is_dead(program_of(point))


def _settle(ground: Ground) -> None:
    """Wait until every half is decided and Kafka has taken what it refused."""
    ground.raise_again()

    def settled() -> bool:
        ground.try_held_now()
        return not ground.undecided() and not ground.held() and not ground.waiting_in_sql()

    wait_for(settled, seconds=90)
