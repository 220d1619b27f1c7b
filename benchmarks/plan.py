"""What one run measures, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

Row = dict[str, Any]
"""One measurement: `path`, `subject`, `round`, and its figures."""

PATHS: Final = {
    "single x 1": (1, 400),
    "single x 64": (64, 5_000),
    "batch 500 x 4": (4, 40_000),
}
"""The connections and the messages of each path over HTTP. Batches come last: after them the relay
may still have work."""
BATCH: Final = 500
CLIENTS: Final = {
    "Go client x 64": ("go", 64, 40_000),
    "Java client x 64": ("java", 64, 40_000),
    "client threads x 64": ("threads", 64, 20_000),
    "client asyncio x 256": ("asyncio", 256, 20_000),
}
RATES: Final = {"END to visible, 300/s": 300, "END to visible, 1 000/s": 1000}
ROCKETMQ: Final = {
    "its client x 1": (1, 4_000),
    "its client x 16": (16, 20_000),
    "its client x 64": (64, 40_000),
}
"""The threads of RocketMQ's producer, and the messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The extent of a run."""

    rounds: int = 5
    scale: float = 1.0
    latency_seconds: float = 8.0
    value_bytes: int = 256

    def messages(self, wanted: int) -> int:
        """Return the messages of a measurement."""
        return max(100, int(wanted * self.scale))


QUICK: Final = Plan(rounds=1, scale=0.4, latency_seconds=4.0)
WHOLE: Final = Plan()


class Subject(Protocol):
    """Something that runs and can be measured; it is paused while others are."""

    name: str

    def awaken(self) -> None:
        """Let its processes go on, and load it until it works as usual."""

    def sleep(self) -> None:
        """Pause all its processes."""

    def measure(self, plan: Plan) -> list[Row]:
        """Measure each of its paths once."""
