"""Is there a setting that an operator would have to know? Sixty loads, defaults against others.

Single messages and batches, from 1 to 64 clients, values of 100 bytes to 64 kB, 1 to 64 partitions.
Each variant is an ``outbox dev`` with one setting changed; it runs beside one with the defaults,
and each load is measured on both in turn, one of them paused. A load's figure is messages a second
until they are published. Prints, for each variant, the median ratio over the loads, and the loads
where it is more than a tenth better: there the defaults would be a trap. The variant in which
nothing is changed shows how many such loads are chance. The whole takes half an
hour; ``--every 4`` takes each fourth load.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.comparison.command import awake_at_the_end
from benchmarks.comparison.installation import Installation
from benchmarks.load.http_load import Load, batch_cycles, half, single_cycles
from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.machine import report, start
from benchmarks.measure.pause import end_in_order
from benchmarks.speed.service import GROUP

SIZES: Final = (100, 1_000, 8_000, 64_000)
PARTITIONS: Final = (1, 8, 64)
CLIENTS: Final = {"single": (1, 8, 64), "batch": (4, 16)}
SINGLES: Final = {1: 150, 8: 600, 64: 1_500}
BATCH: Final = 500
BATCH_BYTES: Final = 1_000_000
BATCHED_BYTES: Final = 12_000_000
MOST_BATCHED: Final = 12_000
VARIANTS: Final[dict[str, dict[str, str]]] = {
    "nothing": {},
    "4 connections to PostgreSQL": {"OUTBOX_DATABASE_POOL_MAX": "4"},
    "30 connections to PostgreSQL": {"OUTBOX_DATABASE_POOL_MAX": "30"},
    "500 records in a Kafka transaction": {"OUTBOX_RELAY_BATCH_MAX": "500"},
    "4 096 records in a Kafka transaction": {"OUTBOX_RELAY_BATCH_MAX": "4096"},
    "two API processes": {"OUTBOX_HTTP_WORKERS": "2"},
    "compressed batches": {"OUTBOX_KAFKA_CONFIG": '{"compression.type": "lz4"}'},
}
TRAP: Final = 1.1
REPEATED: Final = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """One load."""

    form: str
    clients: int
    size: int
    partitions: int

    @property
    def name(self) -> str:
        """The load in words."""
        return f"{self.form} x {self.clients}, {self.size} B, {self.partitions} partitions"

    @property
    def topic(self) -> str:
        """The topic with that many partitions."""
        return f"grid-{self.partitions}"

    @property
    def messages(self) -> int:
        """How many messages take about a second."""
        if self.form == "single":
            return SINGLES[self.clients]
        whole = self.per_batch * self.clients
        return max(1, min(MOST_BATCHED, BATCHED_BYTES // self.size) // whole) * whole

    @property
    def per_batch(self) -> int:
        """The messages of one request."""
        return min(BATCH, BATCH_BYTES // self.size)


CELLS: Final = [
    Cell(form, clients, size, partitions)
    for form, counts in CLIENTS.items()
    for clients, size, partitions in product(counts, SIZES, PARTITIONS)
]


class GridInstallation(Installation):
    """An installation with a topic for each number of partitions."""

    def __init__(self, name: str, running: dict[str, Any]) -> None:
        super().__init__(name, running, with_clients=False)
        admin = AdminClient({"bootstrap.servers": running["kafka_bootstrap_servers"]})
        topics = [NewTopic(f"grid-{count}", num_partitions=count) for count in PARTITIONS]
        for done in admin.create_topics(topics).values():
            done.result(30)

    def load(self, cell: Cell) -> tuple[float, float]:
        """Return messages a second until they are published, and CPU microseconds a message."""
        meter = Meter(self.running["pids"])
        with meter.measured() as cost:
            done = asyncio.run(self._cycles(cell))
            self.drain()
        if done.failures:
            raise SystemExit(f"{cell.name}: {done.failures} failed")
        used = sum(cost.servers.values()) / done.messages * 1e6
        return done.messages / cost.wall, used

    async def _cycles(self, cell: Cell) -> Load:
        value = "x" * cell.size

        def make(n: int) -> dict[str, Any]:
            return half(GROUP, cell.topic, n, value)

        if cell.form == "single":
            return await single_cycles(self.url, cell.clients, cell.messages, make)
        batches = cell.messages // cell.per_batch
        return await batch_cycles(self.url, cell.clients, batches, cell.per_batch, make)


def main() -> None:
    """Compare each variant with the defaults on every load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take each n-th load")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    asked = parser.parse_args()
    end_in_order()
    cells = CELLS[:: asked.every]
    start("settings_grid", loads=len(cells), variants=len(asked.variants))
    with awake_at_the_end() as running:
        usual = GridInstallation("defaults", running)
        usual.sleep_programs()
        for name in asked.variants:
            with awake_at_the_end(settings=VARIANTS[name]) as changed:
                other = GridInstallation(name, changed)
                other.sleep_programs()
                compare(usual, other, cells)


def compare(usual: GridInstallation, other: GridInstallation, cells: Sequence[Cell]) -> None:
    """Measure each load on both in turn; print the ratios and the traps.

    A load on which the variant seems better is measured again, and the median counts.
    """
    for each in (usual, other):
        each.awaken_programs()
        each.load(cells[0])  # warms up
        each.sleep_programs()
    rates, costs = {}, {}
    for cell in cells:
        found = [ratios(usual, other, cell)]
        while found[0][0] > TRAP and len(found) < REPEATED:
            found.append(ratios(usual, other, cell))
        rates[cell.name], costs[cell.name] = (
            statistics.median(each) for each in zip(*found, strict=True)
        )
        figures = {"rate": round(rates[cell.name], 2), "cost": round(costs[cell.name], 2)}
        report(cell.name, variant=other.name, measured=len(found), **figures)
    traps = {name: round(ratio, 2) for name, ratio in rates.items() if ratio > TRAP}
    figures = {"rate": middle(rates), "cost": middle(costs)}
    report(f"variant: {other.name}", loads=len(rates), **figures, traps=traps)


def ratios(usual: GridInstallation, other: GridInstallation, cell: Cell) -> tuple[float, float]:
    """Measure a load on both; return the ratios of rate and CPU time, changed to defaults."""
    found = {}
    for each in (usual, other):
        each.awaken_programs()
        found[each.name] = each.load(cell)
        each.sleep_programs()
    (rate, cost), (other_rate, other_cost) = found[usual.name], found[other.name]
    return other_rate / rate, other_cost / cost


def middle(ratios: dict[str, float]) -> float:
    """Return the median ratio."""
    return round(statistics.median(ratios.values()), 3)


if __name__ == "__main__":
    main()
