"""Batches of 8 MiB that are refused, sent again and again; and a sink that only discards them.

The sink shows what such bytes cost everybody who shares the cores, whoever receives them. It keeps
the pace of the service that it is compared with, and may use as much CPU time for each batch.
"""

from __future__ import annotations

import multiprocessing
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

from api.ingest.bodies.work_steps import STEP_SECONDS
from devservers.ports import LOOPBACK

PIECE_BYTES: Final = 65_536
"""What the service's event loop reads at a time."""
REST: Final = threading.Event()
"""Never set: a wait for it is a rest."""
ANSWER: Final = b"HTTP/1.1 422 Unprocessable Content\r\ncontent-length: 2\r\n\r\n{}"


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
            read_message(client)
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


@contextmanager
def sink(seconds: float, work: float) -> Iterator[str]:
    """Run a process that discards each request and answers it, not sooner than after ``seconds``.

    For each one it uses ``work`` seconds of CPU time. Yields its address.
    """
    with socket.create_server((LOOPBACK, 0)) as listening:
        arguments = (listening, seconds, work)
        process = multiprocessing.Process(target=discard_for_ever, args=arguments, daemon=True)
        process.start()
        try:
            yield f"http://{LOOPBACK}:{listening.getsockname()[1]}"
        finally:
            process.terminate()
            process.join()


def discard_for_ever(listening: socket.socket, seconds: float, work: float) -> None:
    """Serve each connection in a thread; only one of them works at a time, as in the service."""
    one_at_a_time = threading.Lock()
    while True:
        client, _ = listening.accept()
        arguments = (client, seconds, work, one_at_a_time)
        threading.Thread(target=discard, args=arguments, daemon=True).start()


def discard(client: socket.socket, seconds: float, work: float, alone: threading.Lock) -> None:
    """Read, work for, and answer the requests of one connection until it ends."""
    due = time.perf_counter()
    with client, suppress(ConnectionError):
        while read_message(client):
            with alone:
                work_in_steps(work)
            due = max(due + seconds, time.perf_counter())
            REST.wait(max(0.0, due - time.perf_counter()))
            client.sendall(ANSWER)


def work_in_steps(seconds: float) -> None:
    """Use so much CPU time, and rest after each step for as long as it took, as the service."""
    end = time.thread_time() + seconds
    while (now := time.thread_time()) < end:
        step = min(end, now + STEP_SECONDS)
        while time.thread_time() < step:
            pass
        REST.wait(STEP_SECONDS)


def read_message(client: socket.socket) -> bool:
    """Read a head and its body and keep nothing of it; False at the end of the connection."""
    buffer = bytearray(PIECE_BYTES)
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(PIECE_BYTES)
        if not piece:
            return False
        head += piece
    first, _, rest = head.partition(b"\r\n\r\n")
    missing = int(first.lower().split(b"content-length:")[1].split()[0]) - len(rest)
    while missing > 0:
        read = client.recv_into(buffer)
        if not read:
            return False
        missing -= read
    return True
