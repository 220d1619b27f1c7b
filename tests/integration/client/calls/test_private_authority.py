"""A service whose certificate a private authority has signed is reached over TLS, and no other."""

import ssl
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from outbox_client import Message, ServiceUnreachable
from tests import fixtures_http_server
from tests.fixtures_certificates import CertificateAuthority
from tests.integration.client.fixtures_contract_server import ContractService, contract_handler
from tests.integration.client.fixtures_producers import OpenProducer


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path)


@pytest.fixture
def https_url(service: ContractService, authority: CertificateAuthority) -> Iterator[str]:
    """Serve the contract over TLS; yield the URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("127.0.0.1"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), contract_handler(service))
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    server.daemon_threads = True
    with fixtures_http_server.serving(server):
        yield f"https://127.0.0.1:{server.server_port}"


def test_both_producers_trust_the_authority_of_their_context(
    https_url: str, authority: CertificateAuthority, open_producer: OpenProducer
) -> None:
    trusted = ssl.create_default_context(cafile=str(authority.certificate))
    with open_producer(https_url, "billing", ssl_context=trusted) as producer:
        assert producer.prepare(Message("invoices", "v")).state == "PREPARED"


def test_without_it_the_service_is_not_reached_and_receives_no_key(
    service: ContractService, https_url: str, open_producer: OpenProducer
) -> None:
    with (
        open_producer(https_url, "billing", api_key="obx_key", timeout=3) as producer,
        pytest.raises(ServiceUnreachable, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        producer.prepare(Message("invoices", "v"))
    assert service.requests == []
