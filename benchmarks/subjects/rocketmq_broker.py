"""RocketMQ under the same load."""

from __future__ import annotations

from typing import Final

from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.pause import pause, resume
from benchmarks.plan import ROCKETMQ, Plan, Row
from benchmarks.subjects.rocketmq.servers import VERSION, RocketMQ

FIRST_WARM: Final = 40_000
WARM: Final = 2_000


class RocketMQSubject:
    """A broker with SYNC_FLUSH under RocketMQ's own transactional producer."""

    name = f"RocketMQ {VERSION}"

    def __init__(self, running: RocketMQ) -> None:
        self._running = running
        self._warm = False

    def awaken(self) -> None:
        """Let the processes go on; the first time until their code is compiled."""
        resume(self._running.pids.values())
        self._running.send(64, WARM if self._warm else FIRST_WARM)
        self._warm = True

    def sleep(self) -> None:
        """Pause the processes."""
        pause(self._running.pids.values())

    def measure(self, plan: Plan) -> list[Row]:
        """Measure each number of threads once."""
        return [
            self._series(path, threads, plan.messages(messages))
            for path, (threads, messages) in ROCKETMQ.items()
        ]

    def _series(self, path: str, threads: int, messages: int) -> Row:
        meter = Meter(self._running.pids)
        with meter.measured() as cost:
            found = self._running.send(threads, messages)
        return {
            "path": path,
            "messages": messages,
            "failures": found["failures"],
            "late": found["late"],
            "acked_per_second": messages / found["acked_seconds"],
            "through_per_second": messages / found["through_seconds"],
            "p50_ms": found["p50_ms"],
            "p99_ms": found["p99_ms"],
            "cpu_us": {name: each / messages * 1e6 for name, each in cost.servers.items()},
        }
