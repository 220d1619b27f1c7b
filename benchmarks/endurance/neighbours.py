"""How long does a tenant's END take beside another tenant that sends hostile batches?

One tenant prepares and ends messages at a fixed rate, and times each END.
First it is alone. Then a second process sends batches of 8 MiB over a few connections, each as soon
as the one before was answered. The checker is paused, so that the relay's work does not count. The
program ends with 1 if an END failed.

Two controls, measured in turn with it: the same batches at the same pace go to a sink, a process
that discards them; and to one that uses as much CPU time for each as the API does, in the same
steps. The first shows what the bytes cost on shared cores, the second what the work costs there.
What an END takes longer beside the service is due to the event loop that both use.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any, Final

from benchmarks.load.hostile_batches import hostile, sink
from benchmarks.load.http_load import Load
from benchmarks.load.steady_ends import ends
from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.machine import report, start
from benchmarks.speed.service import outbox_dev, register, stopped

SIZE: Final = 8 * 2**20 - 100
GOOD: Final = b'{"producer_group":"bench","topic":"bench-topic","value":"x"}'
LARGEST: Final = b'{"producer_group":"nobody","topic":"t","value":"' + b"\\\\" * 523_000 + b'"}'
"""A valid item of no group, which is decoded in one piece."""


def filled(unit: bytes, size: int = SIZE) -> bytes:
    """Return a list of so many bytes, made of equal elements."""
    return b"[" + b",".join([unit] * ((size - 2) // (len(unit) + 1))) + b"]"


def batch(*items: bytes) -> bytes:
    """Return the body of a batch."""
    return b'{"items":[' + b",".join(items) + b"]}"


def bodies() -> dict[str, bytes]:
    """Return the hostile batches."""
    return {
        "one long text": batch(b'"' + b"x" * (SIZE - 20) + b'"'),
        "objects": b'{"items":' + filled(b"{}") + b"}",
        "one item of objects": batch(filled(b"{}", SIZE - 20)),
        "a thousand items of objects": batch(*[filled(b"{}", 8000)] * 1000),
        "a thousand repeated names": batch(*[GOOD[:-1] + b',"topic":"a"}'] * 1000),
        "escapes": batch(b'"' + b"\\\\" * (SIZE // 2 - 20) + b'"'),
        "eight items of a megabyte": batch(*[LARGEST] * 8),
    }


class Neighbours:
    """One running service, and the ENDs that are measured beside hostile batches."""

    def __init__(self, running: dict[str, Any], asked: argparse.Namespace) -> None:
        self._url = str(running["api_url"])
        self._meter = Meter(running["pids"])
        self._asked = asked
        self._idle_cpu = 0.0
        """The CPU seconds that the API uses in a second of ENDs alone."""

    def measure(self) -> int:
        """Measure ENDs alone and beside each hostile batch; return how many failed."""
        asyncio.run(ends(self._url, 2, self._asked.per_second))
        before = self._meter.of("api")
        alone = self._ends()
        self._idle_cpu = (self._meter.of("api") - before) / alone.seconds
        report("END alone", **alone.summary())
        return alone.failures + sum(self._beside(*each) for each in bodies().items())

    def _beside(self, name: str, body: bytes) -> int:
        """Measure beside the service's and the sinks' batches in turn; return how many failed."""
        found = {each: Load() for each in ("the service", "a sink", "a sink that works")}
        batches, cpu = 0, 0.0
        for _ in range(self._asked.rounds):
            answered, used = self._add(found["the service"], self._url, body)
            batches, cpu = batches + answered, cpu + used
            pace = found["the service"].seconds / max(1, batches) * self._asked.connections
            for each, work in (("a sink", 0.0), ("a sink that works", cpu / max(1, batches))):
                with sink(pace, work) as url:
                    self._add(found[each], url, body)
        for each, load in found.items():
            report("END beside", batch=name, sent_to=each, **load.summary())
        rate = batches / found["the service"].seconds
        per_batch = round(cpu / max(1, batches) * 1000, 1)
        report("batches", batch=name, per_second=round(rate, 1), api_cpu_ms=per_batch)
        return sum(load.failures for load in found.values())

    def _add(self, load: Load, url: str, body: bytes) -> tuple[int, float]:
        """Add ENDs beside batches to this address; return the batches, and the API's CPU time."""
        before = self._meter.of("api")
        with hostile(url, body, self._asked.connections) as answered:
            beside = self._ends()
            batches = int(answered.value)
        load.latencies += beside.latencies
        load.messages += beside.messages
        load.seconds += beside.seconds
        load.failures += beside.failures
        cpu = self._meter.of("api") - before - self._idle_cpu * beside.seconds
        return batches, max(0.0, cpu)

    def _ends(self) -> Load:
        return asyncio.run(ends(self._url, self._asked.seconds, self._asked.per_second))


def main() -> int:
    """Run the benchmark; return 1 if an END failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="of a measurement")
    parser.add_argument("--rounds", type=int, default=2, help="of each kind of batch")
    parser.add_argument("--per-second", type=int, default=50, help="ENDs")
    parser.add_argument("--connections", type=int, default=2, help="of the hostile tenant")
    arguments = parser.parse_args()
    with outbox_dev() as running:
        start("neighbours", batch_bytes=SIZE, **vars(arguments))
        register(running["api_url"])
        with stopped(running["pids"]["checker"]):
            return 1 if Neighbours(running, arguments).measure() else 0


if __name__ == "__main__":
    raise SystemExit(main())
