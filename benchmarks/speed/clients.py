"""How many transactions a second does our own client reach, one message a call?

Each producer process makes its calls from many threads, or from many tasks of one event loop. The
local transaction does nothing, so the figure is the cost of the client and of the service. With
``--requests`` the client keeps that many requests of each kind under way; a large number means
that no call shares a request. The service is a real ``outbox dev``, the relay beside.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Final

from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.machine import report, start
from benchmarks.speed.service import GROUP, TOPIC, outbox_dev, register
from outbox_client import (
    AsyncTransactionProducer,
    LocalTransactionState,
    Message,
    PreparedMessage,
    TransactionProducer,
)
from outbox_client.calls.request_queue import RequestQueue

COMMIT: Final = LocalTransactionState.COMMIT
PROCESSES: Final = 2
ALONE: Final = 10_000
WARM: Final = 0.1


def main() -> None:
    """Run the benchmark: each number of requests under way, with threads and with asyncio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="of each measurement")
    parser.add_argument("--requests", type=int, nargs="*", default=[ALONE, 1, 2, 4])
    parser.add_argument("--size", type=int, default=256, help="bytes of each value")
    arguments = parser.parse_args()
    with outbox_dev() as running:
        start("clients", value_bytes=arguments.size, processes=PROCESSES)
        register(running["api_url"])
        for requests in arguments.requests:
            for kind, at_a_time in (("threads", 64), ("asyncio", 256)):
                measure(running, kind, at_a_time, requests, arguments)


def measure(
    running: dict[str, Any], kind: str, at_a_time: int, requests: int, arguments: Any
) -> None:
    """Measure one way to call, over all processes, and print it."""
    meter, value = Meter(running["pids"]), "x" * arguments.size
    with processes(running["api_url"], kind, at_a_time, value, requests) as send:
        send(int(arguments.messages * WARM))
        with meter.measured() as cost:
            send(arguments.messages)
    report(
        "prepare + COMMIT through our client",
        calls=kind,
        at_a_time=at_a_time,
        requests_under_way="one a call" if requests == ALONE else requests,
        per_second=round(arguments.messages / cost.wall),
        **cost.figures(arguments.messages),
    )


@contextmanager
def processes(
    url: str, kind: str, at_a_time: int, value: str, requests: int | None = None
) -> Iterator[Callable[[int], float]]:
    """Run the producer processes for the block.

    Yields a function that sends so many messages from all of them and returns the seconds.
    """
    given = (url, kind, at_a_time // PROCESSES, requests, value)
    with get_context("spawn").Pool(PROCESSES) as producers:

        def send(messages: int) -> float:
            began = time.perf_counter()
            producers.starmap(produce, [(*given, messages // PROCESSES)] * PROCESSES, chunksize=1)
            return time.perf_counter() - began

        yield send


def produce(
    url: str, kind: str, at_a_time: int, requests: int | None, value: str, messages: int
) -> None:
    """Send ``messages`` from this process; without ``requests`` the client decides."""
    if requests is not None:
        RequestQueue.__init__.__defaults__ = (requests,)
    if kind == "threads":
        with TransactionProducer(url, GROUP, timeout=60) as producer:
            on_threads(producer, at_a_time, value, messages)
    else:
        asyncio.run(on_asyncio(url, at_a_time, value, messages))


def on_threads(producer: TransactionProducer, at_a_time: int, value: str, messages: int) -> None:
    """Send from ``at_a_time`` threads."""
    numbers = iter(range(messages))

    def worker() -> None:
        for number in numbers:
            producer.send_in_transaction(message_of(number, value), lambda prepared: COMMIT)

    with ThreadPoolExecutor(at_a_time) as threads:
        for done in [threads.submit(worker) for _ in range(at_a_time)]:
            done.result()


async def on_asyncio(url: str, at_a_time: int, value: str, messages: int) -> None:
    """Send from ``at_a_time`` tasks."""
    numbers = iter(range(messages))

    async def commit(prepared: PreparedMessage) -> LocalTransactionState:
        return COMMIT

    async with AsyncTransactionProducer(url, GROUP, timeout=60) as producer:

        async def worker() -> None:
            for number in numbers:
                await producer.send_in_transaction(message_of(number, value), commit)

        await asyncio.gather(*(worker() for _ in range(at_a_time)))


def message_of(number: int, value: str) -> Message:
    """Return one message, with one of a thousand keys."""
    return Message(TOPIC, value, key=f"key-{number % 1000}")


if __name__ == "__main__":
    main()
