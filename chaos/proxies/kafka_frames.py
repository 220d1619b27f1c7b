"""Splits and parses Kafka frames: their ends, request names and transactional ids. Pure.

Only the beginning of a request is parsed: the header; in requests of a transaction, the
transactional id; in EndTxn, also commit or abort. Layouts: Kafka's message definitions of 4.x.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

PRODUCE: Final = 0
INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS: Final = 24
END_TXN: Final = 26
WRITE_MARKERS: Final = 27

API_NAMES: Final = {
    PRODUCE: "Produce",
    INIT_PRODUCER_ID: "InitProducerId",
    ADD_PARTITIONS: "AddPartitionsToTxn",
    END_TXN: "EndTxn",
    WRITE_MARKERS: "WriteTxnMarkers",
}
FLEXIBLE_SINCE: Final = {
    PRODUCE: 9,
    INIT_PRODUCER_ID: 2,
    ADD_PARTITIONS: 3,
    END_TXN: 3,
    WRITE_MARKERS: 1,
}
"""From this version on strings are compact and headers end in tagged fields."""
BATCHED_SINCE: Final = 4
"""From this version on AddPartitionsToTxn has a list of transactions, as brokers send it."""
LENGTH: Final = struct.Struct(">i")
LONGEST_FRAME: Final = 128 << 20


class NotKafka(ValueError):
    """The stream does not consist of Kafka's frames."""


class FrameSplitter:
    """Splits a stream into frames, however the network has split it."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are complete now, each with its length. Raises NotKafka."""
        self._rest += data
        frames: list[bytes] = []
        while len(self._rest) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._rest)
            if not 0 <= size <= LONGEST_FRAME:
                raise NotKafka(f"a frame of {size} bytes")
            end = LENGTH.size + size
            if len(self._rest) < end:
                break
            frames.append(bytes(self._rest[:end]))
            del self._rest[:end]
        return frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The parsed beginning of a request."""

    api: int
    version: int
    correlation: int
    client: str
    transactional_id: str = ""
    commits: bool | None = None
    """for EndTxn: commit or abort"""

    @property
    def name(self) -> str:
        """The name of the request, or its number if the proxies do not use it."""
        return API_NAMES.get(self.api, str(self.api))


def read_request(frame: bytes) -> Request:
    """Parse the frame of a request. Raises NotKafka."""
    try:
        return _read_request(_FrameReader(frame, LENGTH.size))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise NotKafka("a request ends too early") from error


def correlation_of(response: bytes) -> int:
    """Return the correlation id of a response's frame. Raises NotKafka."""
    try:
        (correlation,) = LENGTH.unpack_from(response, LENGTH.size)
    except struct.error as error:
        raise NotKafka("a response ends too early") from error
    return int(correlation)


def end_txn_error(request: Request, response: bytes) -> int:
    """Return the error code in the answer to an EndTxn; 0 means that it was performed."""
    tags = 1 if request.version >= FLEXIBLE_SINCE[END_TXN] else 0
    (error,) = struct.unpack_from(">h", response, LENGTH.size + 4 + tags + 4)
    return int(error)


def _read_request(reader: _FrameReader) -> Request:
    api, version, correlation = reader.numbers(">hhi")
    client = reader.text() or ""
    transactional_id, commits = "", None
    if api in FLEXIBLE_SINCE and api != WRITE_MARKERS:
        flexible = version >= FLEXIBLE_SINCE[api]
        if flexible:
            reader.skip_tags()
        if api == ADD_PARTITIONS and version >= BATCHED_SINCE:
            reader.varint()
        transactional_id = (reader.compact_text() if flexible else reader.text()) or ""
        if api == END_TXN:
            *_, committed = reader.numbers(">qh?")
            commits = bool(committed)
    return Request(
        api=api,
        version=version,
        correlation=correlation,
        client=client,
        transactional_id=transactional_id,
        commits=commits,
    )


class _FrameReader:
    """Reads the fields of a frame in their order."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def numbers(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def text(self) -> str | None:
        (size,) = self.numbers(">h")
        return None if size < 0 else self._take(size)

    def compact_text(self) -> str | None:
        size = self.varint()
        return None if size == 0 else self._take(size - 1)

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self._at += self.varint()

    def _take(self, size: int) -> str:
        part = self._data[self._at : self._at + size]
        if len(part) < size:
            raise IndexError(size)
        self._at += size
        return part.decode()
