"""How much CPU does a prepared and committed message cost each process, on the two hot paths?

Batches of 500 over 4 connections, and single requests over 64 and over 1, while the relay
publishes. The figure is CPU microseconds a message in each process, which a busy machine changes
least. With ``--beside`` a second checkout of the project runs at the same time and is measured in
turn, A B A B …, and the ratio is that of each pair. Each is a real ``outbox dev``.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.load.http_load import Load, batch_cycles, half, single_cycles
from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.machine import report, start
from benchmarks.speed.service import GROUP, TOPIC, outbox_dev, register, stopped

BATCH: Final = 500
SHAPES: Final = {"single x 1": (1, 400), "single x 64": (64, 3_000), "batch 500 x 4": (4, 20_000)}
"""The connections and the messages of a round. Batches come last: the relay of one checkout may
still publish them while the other one is measured."""

Figures = dict[str, float]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout, to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the messages")
    parser.add_argument("--size", type=int, default=256, help="bytes of each value")
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--api-alone", action="store_true", help="the checker is stopped")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        trees = {"here": None, **({"beside": arguments.beside} if arguments.beside else {})}
        running = {name: stack.enter_context(outbox_dev(tree=at)) for name, at in trees.items()}
        start("hot paths", value_bytes=arguments.size, api_alone=arguments.api_alone)
        for each in running.values():
            register(each["api_url"])
            if arguments.api_alone:
                stack.enter_context(stopped(each["pids"]["checker"]))
        for shape in arguments.shapes:
            compare(running, shape, arguments)


def compare(running: dict[str, Any], shape: str, arguments: argparse.Namespace) -> None:
    """Measure one shape in turn; print the medians, and those of the ratios."""
    found: dict[str, list[Figures]] = defaultdict(list)
    connections, messages = SHAPES[shape]
    wanted = int(messages * arguments.scale)
    for turn in range(arguments.rounds + 1):
        for name, each in running.items():
            figures = measure(each, connections, wanted, "x" * arguments.size)
            if turn:  # the first one warms up
                found[name].append(figures)
    for name, rounds in found.items():
        report(shape, checkout=name, rounds=len(rounds), **medians(rounds))
    if "beside" in found:
        pairs = zip(found["here"], found["beside"], strict=True)
        ratios = [{key: a[key] / b[key] for key in a if b[key]} for a, b in pairs]
        report(f"{shape}: here / beside", **medians(ratios, digits=2))


def measure(dev: dict[str, Any], connections: int, messages: int, value: str) -> Figures:
    """Run one load; return the CPU microseconds a message by process, and the rate."""
    meter = Meter(dev["pids"])
    with meter.measured() as cost:
        load = asyncio.run(cycles(dev["api_url"], connections, messages, value))
    micros = {name: seconds / load.messages * 1e6 for name, seconds in cost.servers.items()}
    micros["client"] = cost.cpu / load.messages * 1e6
    summary = load.summary()
    if summary["failures"]:
        raise SystemExit(f"{summary['failures']} requests failed")
    return {**micros, "all": sum(micros.values()), "per_second": summary["per_second"]}


async def cycles(url: str, connections: int, messages: int, value: str) -> Load:
    """Prepare and commit the messages; few connections carry batches, unless it is one."""

    def make(n: int) -> dict[str, Any]:
        return half(GROUP, TOPIC, n, value)

    if connections == SHAPES["batch 500 x 4"][0]:
        return await batch_cycles(url, connections, max(1, messages // BATCH), BATCH, make)
    return await single_cycles(url, connections, messages, make)


def medians(rounds: list[Figures], digits: int = 0) -> dict[str, float]:
    """Return the median of each figure."""
    return {
        key: round(statistics.median(each[key] for each in rounds if key in each), digits or None)
        for key in rounds[0]
    }


if __name__ == "__main__":
    main()
