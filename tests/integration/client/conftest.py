"""A server of the contract, and an empty PostgreSQL database of the producer."""

from collections.abc import Iterator

import pytest

from devservers.postgres import EmbeddedPostgres
from outbox_client import TransactionProducer
from tests.fixtures_databases import drop_database, make_database
from tests.integration.client.fixtures_contract_server import ContractService, serving


@pytest.fixture
def service() -> ContractService:
    """The state of the contract server."""
    return ContractService()


@pytest.fixture
def service_url(service: ContractService) -> Iterator[str]:
    """The contract server's URL."""
    with serving(service) as url:
        yield url


@pytest.fixture
def producer(service_url: str) -> Iterator[TransactionProducer]:
    """A producer of the group `billing`."""
    with TransactionProducer(service_url, "billing", api_key="obx_key", timeout=3.0) as producer:
        yield producer


@pytest.fixture
def local_database(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """The URL of the producer's empty database."""
    url = make_database(postgres_server.database_url, None)
    yield url
    drop_database(postgres_server.database_url, url)
