"""The questions we ask a broker ourselves, so that no Kafka client lives in a process that
starts others.

Only what is needed of the Kafka protocol: request headers v1 and v2, Metadata v4, ApiVersions v3
and DescribeQuorum v0.
"""

import socket
import struct
from collections.abc import Iterator

METADATA, METADATA_VERSION = 3, 4
API_VERSIONS, API_VERSIONS_VERSION = 18, 3
CLIENT = b"outbox-dev"
DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION = 55, 0
QUORUM_TOPIC = b"__cluster_metadata"
FINALIZED_FEATURES_TAG = 2


def has_controller(port: int, timeout_seconds: float = 2.0) -> bool:
    """Tell whether the broker on this loopback port answers a metadata request and knows a live
    controller.
    """
    no_topics_no_creation = struct.pack(">ib", 0, 0)
    try:
        answer = _ask(port, METADATA, METADATA_VERSION, no_topics_no_creation, timeout_seconds)
    except OSError:
        return False
    return _controller_of(answer) >= 0


def active_controller(port: int, timeout_seconds: float = 2.0) -> int:
    """Return the node that leads the controllers' quorum, -1 while there is none.

    The controller that Metadata names is any live broker. Raises OSError.
    """
    only_partition = b"\x02" + struct.pack(">i", 0) + b"\x00"
    topics = b"\x02" + _compact(QUORUM_TOPIC) + only_partition + b"\x00"
    question = b"\x00" + topics + b"\x00"
    answer = _Reader(
        _ask(port, DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION, question, timeout_seconds)
    )
    answer.skip_tags()
    (error,) = answer.numbers(">h")
    if error or not answer.varint() - 1:
        return -1
    answer.skip(answer.varint() - 1)
    answer.varint()
    _partition, error, leader = answer.numbers(">ihi")
    return -1 if error else int(leader)


def finalized_features(port: int, timeout_seconds: float = 2.0) -> dict[str, int]:
    """Return each finalized feature and its level, e.g. `transaction.version`; raises OSError."""
    software = _compact(CLIENT) + _compact(b"1") + b"\x00"
    answer = _Reader(
        _ask(port, API_VERSIONS, API_VERSIONS_VERSION, b"\x00" + software, timeout_seconds)
    )
    answer.skip(2)
    for _ in range(answer.varint() - 1):
        answer.skip(6)
        answer.skip_tags()
    answer.skip(4)
    return dict(_features(answer))


def _features(answer: "_Reader") -> Iterator[tuple[str, int]]:
    for _ in range(answer.varint()):
        tag, size = answer.varint(), answer.varint()
        if tag != FINALIZED_FEATURES_TAG:
            answer.skip(size)
            continue
        for _ in range(answer.varint() - 1):
            name = answer.take(answer.varint() - 1).decode()
            highest, _lowest = answer.numbers(">hh")
            answer.skip_tags()
            yield name, highest


def _ask(port: int, api: int, version: int, body: bytes, timeout_seconds: float) -> bytes:
    header = struct.pack(">hhih", api, version, 1, len(CLIENT)) + CLIENT
    request = header + body
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_seconds) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _receive(connection, size)[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError("the broker closed the connection")
        data += part
    return data


def _controller_of(metadata: bytes) -> int:
    answer = _Reader(metadata)
    answer.skip(4)
    (brokers,) = answer.numbers(">i")
    for _ in range(brokers):
        answer.skip(4)
        answer.skip_text()
        answer.skip(4)
        answer.skip_text()
    answer.skip_text()
    (controller,) = answer.numbers(">i")
    return int(controller) if brokers else -1


def _compact(text: bytes) -> bytes:
    return bytes([len(text) + 1]) + text


class _Reader:
    """Walks through an answer."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        self._at += size
        return part

    def skip(self, size: int) -> None:
        self._at += size

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def skip_text(self) -> None:
        (size,) = self.numbers(">h")
        self.skip(max(size, 0))

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())
