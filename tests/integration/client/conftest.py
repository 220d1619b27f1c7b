"""A server of the contract, both clients, and an empty PostgreSQL database of the producer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devservers.postgres import EmbeddedPostgres
from outbox_client import TransactionProducer
from tests.fixtures_databases import drop_database, make_database
from tests.integration.client.fixtures_contract_server import ContractService, serving
from tests.integration.client.fixtures_mariadb import SERVER, mariadb, mariadb_program
from tests.integration.client.fixtures_producers import (
    OpenProducer,
    open_on_asyncio,
    open_on_threads,
)


@pytest.fixture
def service() -> ContractService:
    """The state of the contract server."""
    return ContractService()


@pytest.fixture
def service_url(service: ContractService) -> Iterator[str]:
    """The contract server's URL."""
    with serving(service) as url:
        yield url


@pytest.fixture(params=[open_on_threads, open_on_asyncio], ids=["threads", "asyncio"])
def open_producer(request: pytest.FixtureRequest) -> OpenProducer:
    """Opens a producer: once as the client for threads, once as the client for asyncio."""
    opener: OpenProducer = request.param
    return opener


@pytest.fixture
def producer(service_url: str, open_producer: OpenProducer) -> Iterator[TransactionProducer]:
    """A producer of the group `billing`."""
    with open_producer(service_url, "billing", api_key="obx_key", timeout=3.0) as producer:
        yield producer


@pytest.fixture(scope="session")
def mariadb_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run MariaDB, or skip where it is not installed."""
    program = mariadb_program()
    if program is None:
        pytest.skip(f"{SERVER} is not on this machine (package mariadb-server-core)")
    with mariadb(program, tmp_path_factory.mktemp("m")) as socket:
        yield socket


@pytest.fixture
def local_database(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """The URL of the producer's empty database."""
    url = make_database(postgres_server.database_url, None)
    yield url
    drop_database(postgres_server.database_url, url)
