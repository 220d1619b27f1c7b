"""Leaves are made ahead of the newest xid, in time, at the present rate."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from checker.maintenance.partition_maintenance import (
    AHEAD,
    AHEAD_MOST,
    EVERY_SECONDS,
    RETRY_SECONDS,
    PartitionMaintenance,
)
from outbox.telemetry.metrics import Metrics
from tests.unit.checker.checks.fixtures_fakes import ManualClock


class FakePartitions:
    """Leaves of a database whose newest xid and time the test sets."""

    def __init__(self) -> None:
        self.newest = (0, 0.0)
        self.asked: list[int] = []
        self.missing = 0
        self.alone = False

    async def newest_xid(self) -> tuple[int, float]:
        return self.newest

    async def create_ahead(self, count: int) -> int:
        self.asked.append(count)
        return self.missing

    async def default_rows(self) -> Mapping[str, bool]:
        return {"half_message": self.alone}


class Refusing(FakePartitions):
    """A database that refuses a leaf for a reason that is no lock."""

    async def create_ahead(self, count: int) -> int:
        raise RuntimeError


@pytest.mark.parametrize(
    ("rate", "ahead"), [(0, AHEAD), (200, AHEAD), (1000, 21), (100_000, AHEAD_MOST)]
)
async def test_leaves_last_for_six_hours_at_the_present_rate(rate: int, ahead: int) -> None:
    leaves = FakePartitions()
    task = PartitionMaintenance(leaves, Metrics(), ManualClock())
    await task.step()
    leaves.newest = (rate * 60, 60.0)
    await task.step()
    leaves.newest = (rate * 61, 61.0)
    await task.step()
    assert leaves.asked == [AHEAD, ahead, ahead], "a step that follows soon keeps the rate"


async def test_the_present_rate_is_known_soon_after_the_clock_was_set_back() -> None:
    leaves = FakePartitions()
    task = PartitionMaintenance(leaves, Metrics(), ManualClock())
    leaves.newest = (0, 86_400.0)
    await task.step()
    for xid, at in ((60_000, 0.0), (120_000, 60.0)):
        leaves.newest = (xid, at)
        await task.step()
    assert leaves.asked == [AHEAD, AHEAD, 21]


async def test_a_leaf_that_somebody_is_in_the_way_of_is_tried_again_soon() -> None:
    leaves = FakePartitions()
    task = PartitionMaintenance(leaves, Metrics(), ManualClock())
    assert await task.step() == EVERY_SECONDS
    leaves.missing = 1
    assert await task.step() == RETRY_SECONDS


async def test_the_alarm_is_set_before_anything_may_fail() -> None:
    leaves, metrics = Refusing(), Metrics()
    leaves.alone = True
    with pytest.raises(RuntimeError):
        await PartitionMaintenance(leaves, metrics, ManualClock()).step()
    assert metrics["default_leaf_rows"].labels("half_message")._value.get() == 1


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_clock_that_was_set_is_logged_and_counted_once(jump: float) -> None:
    leaves, metrics, clock = FakePartitions(), Metrics(), ManualClock()
    task = PartitionMaintenance(leaves, metrics, clock)
    with capture_logs() as lines:
        for seconds, at in ((0, 0.0), (60, 60.0), (120, 120.0 + jump), (180, 180.0 + jump)):
            clock.seconds, leaves.newest = seconds, (0, at)
            await task.step()
    assert [(each["event"], each["seconds"]) for each in lines] == [("clock_jumped", jump)]
    assert metrics["clock_jumps_total"]._value.get() == 1
