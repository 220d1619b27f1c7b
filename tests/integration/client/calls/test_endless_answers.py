"""A server that never completes an answer, or sends a small one that would become large."""

import gzip
import socket
from threading import Event

import pytest

from outbox_client import BadAnswer, Message, ServiceUnreachable
from outbox_client.calls.transport import ANSWER_MAX_BYTES
from tests.integration.client.fixtures_contract_server import ContractService, Fault
from tests.integration.client.fixtures_producers import OpenProducer
from tests.integration.fixtures_tcp_server import tcp_server

INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"
HEAD = b"HTTP/1.1 201 Created\r\n"
DROP_SECONDS = 0.05
SENT_MAX = 200
"""Ten seconds of drops."""


class Dripping:
    """What a server has sent, a drop at a time."""

    def __init__(self, first: bytes, drop: bytes) -> None:
        self.first, self.drop = first, drop
        self.most = 0

    def serve(self, connection: socket.socket) -> None:
        """Read a request; then send drops until the caller has gone."""
        connection.recv(65_536)
        connection.sendall(self.first)
        for sent in range(1, SENT_MAX + 1):
            connection.sendall(self.drop)
            self.most = max(self.most, sent)
            Event().wait(DROP_SECONDS)


@pytest.mark.parametrize(
    ("first", "drop"),
    [(b"", INTERIM), (HEAD, b"a"), (HEAD + b"\r\n", b" ")],
    ids=["interim answers", "a header", "a body"],
)
def test_an_answer_that_drips_is_given_up_in_time(
    open_producer: OpenProducer, first: bytes, drop: bytes
) -> None:
    drops = Dripping(first, drop)
    with (
        tcp_server(drops.serve) as url,
        open_producer(url, "billing", timeout=0.5) as producer,
        pytest.raises(ServiceUnreachable),
    ):
        producer.prepare(Message("invoices", "v"))
    assert 0 < drops.most < SENT_MAX


def test_a_compressed_answer_is_not_unpacked(
    service: ContractService, service_url: str, open_producer: OpenProducer
) -> None:
    bomb = gzip.compress(b" " * (ANSWER_MAX_BYTES * 2))
    with open_producer(service_url, "billing", timeout=0.5) as producer:
        service.faults.extend([Fault(201, bomb, {"content-encoding": "gzip"})] * 100)
        with pytest.raises(BadAnswer, match="content-encoding"):
            producer.prepare(Message("invoices", "v"))
