"""A request leaves in one piece, and what a server answers to a part of it is read."""

import httpcore2
import pytest

from outbox_client.calls.time_limit import WRITE_BYTES, LimitedBackend, TimeLimit


class Wire(httpcore2.NetworkStream):
    """Keeps what is sent, answers all of it, and may be closed by the other side."""

    def __init__(self, *, closed: bool = False) -> None:
        self.sent: list[bytes] = []
        self._closed = closed

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return b"answer"

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.sent.append(buffer)
        if self._closed:
            raise httpcore2.WriteError


class Backend(httpcore2.NetworkBackend):
    """Connects to one wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def connect_tcp(self, *arguments: object, **options: object) -> httpcore2.NetworkStream:
        return self._wire


def connected(wire: Wire, limit: TimeLimit | None = None) -> httpcore2.NetworkStream:
    backend = LimitedBackend(limit or TimeLimit(), Backend(wire))
    return backend.connect_tcp("service", 80)


def test_what_was_sent_is_not_sent_again() -> None:
    wire = Wire()
    stream = connected(wire)
    stream.write(b"request")
    stream.read(10)
    stream.read(10)
    assert wire.sent == [b"request"]


def test_a_long_request_leaves_in_pieces_that_each_have_a_time_limit() -> None:
    wire = Wire()
    stream = connected(wire)
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
