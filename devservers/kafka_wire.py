"""Two requests to a broker over a plain socket.

A process that starts other processes must hold no Kafka client.

Only the needed part of the Kafka protocol: request headers v1 and v2, Metadata v4 and
DescribeQuorum v0.
"""

import socket
import struct

METADATA, METADATA_VERSION = 3, 4
CLIENT = b"outbox-dev"
DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION = 55, 0
QUORUM_TOPIC = b"__cluster_metadata"


def has_controller(port: int) -> bool:
    """Return whether the broker on this loopback port answers and knows a live controller."""
    no_topics_no_creation = struct.pack(">ib", 0, 0)
    try:
        answer = ask(port, METADATA, METADATA_VERSION, no_topics_no_creation)
    except OSError:
        return False
    return _controller_of(answer) >= 0


def active_controller(port: int) -> int:
    """Return the node that leads the controllers' quorum, -1 without one.

    The controller in a Metadata answer may be any live broker. Raises OSError.
    """
    only_partition = b"\x02" + struct.pack(">i", 0) + b"\x00"
    topics = b"\x02" + compact(QUORUM_TOPIC) + only_partition + b"\x00"
    question = b"\x00" + topics + b"\x00"
    answer = AnswerReader(ask(port, DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION, question))
    answer.skip_tags()
    (error,) = answer.numbers(">h")
    if error or not answer.varint() - 1:
        return -1
    answer.skip(answer.varint() - 1)
    answer.varint()
    _partition, error, leader = answer.numbers(">ihi")
    return -1 if error else int(leader)


def ask(port: int, api: int, version: int, body: bytes, timeout_seconds: float = 2.0) -> bytes:
    """Send one request and return the answer's body. Raises OSError."""
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
    answer = AnswerReader(metadata)
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


def compact(text: bytes) -> bytes:
    """Return a compact string of the protocol; shorter than 127 bytes."""
    return bytes([len(text) + 1]) + text


class AnswerReader:
    """Reads the fields of an answer in their order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        part = self._data[self._at : self._at + size]
        self._at += size
        return part

    def skip(self, size: int) -> None:
        """Skip bytes."""
        self._at += size

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Return the next numbers of a ``struct`` layout."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def varint(self) -> int:
        """Return the next unsigned varint."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def skip_text(self) -> None:
        """Skip a nullable string."""
        (size,) = self.numbers(">h")
        self.skip(max(size, 0))

    def skip_tags(self) -> None:
        """Skip tagged fields."""
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())
