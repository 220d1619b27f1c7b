"""How many transactions a second do our own clients reach, one message a call?

Each producer process makes its calls from many threads, or from many tasks of one event loop. The
local transaction does nothing, so the figure is the cost of the client and of the service.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from benchmarks.subjects.outbox_dev import GROUP, TOPIC
from outbox_client import (
    AsyncTransactionProducer,
    LocalTransactionState,
    Message,
    PreparedMessage,
    TransactionProducer,
)

COMMIT: Final = LocalTransactionState.COMMIT
HERE: Final = Path(__file__).parent
MAVEN: Final = ("mvn", "-q", "-B", "-pl", "core", "package", "dependency:copy-dependencies")
COMPILED: Final = {
    "go": (
        HERE / "go_client",
        ("go", "build", "-buildvcs=false", "-o", "{folder}/load", "."),
        ("{folder}/load",),
    ),
    "java": (
        HERE.parents[1] / "clients/java",
        MAVEN,
        (
            "java",
            "-cp",
            "core/target/classes:core/target/dependency/*",
            str(HERE / "JavaLoad.java"),
        ),
    ),
}
"""The loads in other languages: where and how each is built, and how it is run there."""
PROCESSES: Final = 2
WARM: Final = 0.1
"""What is sent before a measurement, as a part of it."""
WARM_JVM: Final = 40_000
"""The messages until the code of a JVM is compiled; RocketMQ's own producer gets as many."""


@contextmanager
def compiled(url: str, kind: str, at_a_time: int, size: int) -> Iterator[Callable[[int], float]]:
    """Run a producer of our client in that language for the block, as ``processes``.

    ``at_a_time`` is the number of its threads or goroutines.
    """
    place, build, program = COMPILED[kind]
    with tempfile.TemporaryDirectory(prefix=f"outbox-{kind}-") as folder:
        subprocess.run([each.format(folder=folder) for each in build], cwd=place, check=True)
        command = [each.format(folder=folder) for each in program]
        command += [url, GROUP, TOPIC, str(size)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=place, stdin=pipe, stdout=pipe, text=True) as load:
            assert load.stdin is not None
            assert load.stdout is not None
            asked, answers = load.stdin, load.stdout

            def send(messages: int) -> float:
                asked.write(f"{at_a_time} {messages}\n")
                asked.flush()
                return float(answers.readline())

            yield send
            asked.close()


@contextmanager
def processes(url: str, kind: str, at_a_time: int, value: str) -> Iterator[Callable[[int], float]]:
    """Run the producer processes for the block.

    Yields a function that sends that number of messages from all of them and returns the seconds.
    """
    given = (url, kind, at_a_time // PROCESSES, value)
    with get_context("spawn").Pool(PROCESSES) as producers:

        def send(messages: int) -> float:
            began = time.perf_counter()
            producers.starmap(produce, [(*given, messages // PROCESSES)] * PROCESSES, chunksize=1)
            return time.perf_counter() - began

        yield send


def produce(url: str, kind: str, at_a_time: int, value: str, messages: int) -> None:
    """Send ``messages`` from this process."""
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
