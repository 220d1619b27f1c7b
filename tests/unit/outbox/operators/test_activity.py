"""What a process did is the growth of its counters since it was written last."""

from __future__ import annotations

import pytest

from outbox.errors import DatabaseUnavailable
from outbox.operators.activity import Growth, ProcessActivity
from outbox.telemetry.metrics import Metrics


async def test_each_count_is_written_once_and_by_group() -> None:
    written: list[Growth] = []
    failures = [DatabaseUnavailable()]

    async def store(growth: Growth) -> None:
        if failures:
            raise failures.pop()
        written.append(growth)

    metrics = Metrics()
    metrics["half_prepared_total"].labels("billing", "a1").inc(7)
    done = ProcessActivity(metrics, store)
    metrics["half_prepared_total"].labels("billing", "a1").inc(3)
    metrics["half_ended_total"].labels("billing", "COMMIT", "producer").inc(2)
    metrics["half_ended_total"].labels("billing", "COMMIT", "check").inc()
    metrics["half_ended_total"].labels("shop", "ROLLBACK", "check").inc()
    metrics["publish_total"].labels("a", "shop").inc(4)
    metrics["publish_total"].labels("b", "shop").inc(5)
    metrics["checks_total"].labels("shop", "timeout").inc()
    with pytest.raises(DatabaseUnavailable):
        await done.step()
    await done.step()
    await done.step()
    metrics["publish_total"].labels("b", "shop").inc()
    await done.step()
    assert written == [
        {
            ("billing", "a1"): {"prepared": 3},
            ("billing", ""): {"committed": 3},
            ("shop", ""): {"rolled_back": 1, "published": 9, "check_timeout": 1},
        },
        {("shop", ""): {"published": 1}},
    ]
