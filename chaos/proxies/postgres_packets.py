"""Splits PostgreSQL's packets and names them (protocol 3.0, without TLS). Pure."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

LENGTH: Final = struct.Struct(">I")
LONGEST_PACKET: Final = 1 << 30
TLS_ASKED: Final = frozenset({80877103, 80877104})
"""Codes of the packets that request encryption; the start-up packet follows them."""
COMMIT: Final = "COMMIT"
NAMES: Final = {b"c": "CopyDone", b"S": "Sync", b"E": "Execute", b"X": "Terminate"}
STARTUP: Final = "Startup"


class NotPostgres(ValueError):
    """The stream does not consist of PostgreSQL's packets."""


class Packet(NamedTuple):
    """A whole packet of a client and its name."""

    name: str
    data: bytes


class PacketSplitter:
    """Splits a client's stream into packets, however the network has split it."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._started = False

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that are complete now. Raises NotPostgres."""
        self._rest += data
        packets: list[Packet] = []
        while (packet := self._next()) is not None:
            packets.append(packet)
        return packets

    def _next(self) -> Packet | None:
        head = 1 if self._started else 0
        if len(self._rest) < head + LENGTH.size:
            return None
        (size,) = LENGTH.unpack_from(self._rest, head)
        if not LENGTH.size <= size <= LONGEST_PACKET:
            raise NotPostgres(f"a packet of {size} bytes")
        if len(self._rest) < head + size:
            return None
        data = bytes(self._rest[: head + size])
        del self._rest[: head + size]
        if head:
            return Packet(_name(data), data)
        self._started = size < 8 or LENGTH.unpack_from(data, 4)[0] not in TLS_ASKED
        return Packet(STARTUP, data)


def _name(data: bytes) -> str:
    kind = data[:1]
    if kind == b"Q" and _commits(data[5:]):
        return COMMIT
    if kind == b"P" and _commits(data[data.index(b"\0", 5) + 1 :]):
        return COMMIT
    return NAMES.get(kind, kind.decode("latin-1"))


def _commits(text: bytes) -> bool:
    return text[:6].upper() == b"COMMIT"
