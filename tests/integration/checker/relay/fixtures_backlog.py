"""A backlog of many keys, and how far it is published."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.fixtures_replacing import replace
from tests.integration.checker.relay.fixtures_relay import RelayWorld

KEYS = 7
"""The keys over which a backlog is spread."""


def commit_backlog(world: RelayWorld, numbers: Sequence[int], keys: int = KEYS) -> None:
    """Commit numbered messages over a few keys, 50 a flush; a value begins with its number."""
    template = world.message()
    for first in range(0, len(numbers), 50):
        world.commit(
            *(
                replace(template, key=b"key-%d" % (n % keys), value=b"%d" % n)
                for n in numbers[first : first + 50]
            )
        )


def wait_running(process: subprocess.Popen[str]) -> None:
    """Wait until the process has taken the shard over."""
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"


def published_up_to(world: RelayWorld) -> int:
    """Return how many of the test's ids are at or below the stored position."""
    return int(
        world.one(
            "SELECT count(*) FROM outbox.commit_log l CROSS JOIN LATERAL unnest(l.half_ids)"
            " WITH ORDINALITY i (half_id, n), outbox.progress p"
            " WHERE p.name = 'relay:3' AND (l.xid, i.n) <= (p.position, p.position_n)"
        )
    )
