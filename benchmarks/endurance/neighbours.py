"""How long does a tenant's END take beside another tenant that sends hostile batches?

One tenant prepares and ends messages at a fixed rate, and times each END.
First it is alone. Then a second process sends batches of 8 MiB over a few connections, each as soon
as the one before was answered. A batch of one long text, which costs its bytes alone, is the
control. The checker is paused, so that the relay's work does not count. The program ends with 1 if
an END failed.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.load.steady_ends import ends
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
    """Return the hostile batches; the first is the control."""
    return {
        "one long text": batch(b'"' + b"x" * (SIZE - 20) + b'"'),
        "objects": b'{"items":' + filled(b"{}") + b"}",
        "one item of objects": batch(filled(b"{}", SIZE - 20)),
        "a thousand items of objects": batch(*[filled(b"{}", 8000)] * 1000),
        "a thousand repeated names": batch(*[GOOD[:-1] + b',"topic":"a"}'] * 1000),
        "escapes": batch(b'"' + b"\\\\" * (SIZE // 2 - 20) + b'"'),
        "eight items of a megabyte": batch(*[LARGEST] * 8),
    }


def send_for_ever(url: str, body: bytes, answered: Any) -> None:
    """Send a batch over one connection again and again; count the answers."""
    parts = urlsplit(url)
    head = (
        f"POST /v1/half-messages/batch HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((parts.hostname, parts.port)) as client:
        while True:
            client.sendall(head.encode() + body)
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += client.recv(65_536)
            first, _, rest = answer.partition(b"\r\n\r\n")
            missing = int(first.lower().split(b"content-length:")[1].split()[0]) - len(rest)
            while missing > 0:
                missing -= len(client.recv(65_536))
            with answered.get_lock():
                answered.value += 1


@contextmanager
def hostile(url: str, body: bytes, connections: int) -> Iterator[Any]:
    """Send hostile batches for the block; yield the number of answers."""
    answered = multiprocessing.Value("q", 0)
    senders = [
        multiprocessing.Process(target=send_for_ever, args=(url, body, answered), daemon=True)
        for _ in range(connections)
    ]
    for sender in senders:
        sender.start()
    try:
        yield answered
    finally:
        for sender in senders:
            sender.terminate()
            sender.join()


def measure(url: str, seconds: int, per_second: int, connections: int) -> int:
    """Measure ENDs alone and beside each hostile batch; return how many failed."""
    asyncio.run(ends(url, 2, per_second))
    alone = asyncio.run(ends(url, seconds, per_second))
    report("END alone", **alone.summary())
    failures = alone.failures
    for name, body in bodies().items():
        with hostile(url, body, connections) as answered:
            beside = asyncio.run(ends(url, seconds, per_second))
            batches = round(answered.value / beside.seconds, 1)
        report("END beside", batch=name, batches_per_second=batches, **beside.summary())
        failures += beside.failures
    return failures


def main() -> int:
    """Run the benchmark; return 1 if an END failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=15, help="per kind of batch")
    parser.add_argument("--per-second", type=int, default=50, help="ENDs")
    parser.add_argument("--connections", type=int, default=2, help="of the hostile tenant")
    arguments = parser.parse_args()
    with outbox_dev() as running:
        start("neighbours", batch_bytes=SIZE, **vars(arguments))
        register(running["api_url"])
        with stopped(running["pids"]["checker"]):
            url = running["api_url"]
            failures = measure(url, arguments.seconds, arguments.per_second, arguments.connections)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
