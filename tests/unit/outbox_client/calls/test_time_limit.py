"""A request leaves within its time limit, however long it is."""

import httpcore2
import pytest

from outbox_client.calls.time_limit import WRITE_BYTES, LimitedBackend, TimeLimit


class Wire(httpcore2.NetworkStream):
    """Keeps what is sent, and answers all of it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return b"answer"

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.sent.append(buffer)


class Backend(httpcore2.NetworkBackend):
    """Connects to one wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def connect_tcp(self, *arguments: object, **options: object) -> httpcore2.NetworkStream:
        return self._wire


def connected(wire: Wire, limit: TimeLimit) -> httpcore2.NetworkStream:
    return LimitedBackend(limit, Backend(wire)).connect_tcp("service", 80)


def test_a_long_request_leaves_in_pieces_that_each_have_a_time_limit() -> None:
    wire = Wire()
    stream = connected(wire, TimeLimit())
    stream.write(b"x" * (WRITE_BYTES + 1))
    stream.read(10)
    assert [len(piece) for piece in wire.sent] == [WRITE_BYTES, 1]


def test_nothing_is_sent_after_the_time_limit() -> None:
    wire, limit = Wire(), TimeLimit()
    stream = connected(wire, limit)
    with limit.of(-1):
        stream.write(b"request")
        with pytest.raises(httpcore2.WriteTimeout):
            stream.read(10)
    assert wire.sent == []
