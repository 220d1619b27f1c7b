"""A server that never completes an answer, or sends a small one that would become large."""

import gzip
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest

from outbox_client import BadAnswer, Message, ServiceUnreachable
from outbox_client.calls.transport import ANSWER_MAX_BYTES
from tests.integration.client.fixtures_contract_server import ContractService, Fault
from tests.integration.client.fixtures_producers import OpenProducer

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

    def serve(self, handler: socketserver.BaseRequestHandler) -> None:
        """Read a request; then send drops until the caller has gone."""
        sent = 0
        with suppress(OSError):
            handler.request.recv(65_536)
            handler.request.sendall(self.first)
            while sent < SENT_MAX:
                handler.request.sendall(self.drop)
                sent += 1
                self.most = max(self.most, sent)
                Event().wait(DROP_SECONDS)


@contextmanager
def dripping(drops: Dripping) -> Iterator[str]:
    """Serve drops for the block; yield the URL."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            drops.serve(self)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


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
        dripping(drops) as url,
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
