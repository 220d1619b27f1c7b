"""One PostgreSQL server and one Kafka broker for a whole test session; with ``--installation aged``
both have lived.

Durability settings are the servers' own: what the tests prove must hold as it runs in earnest.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from devservers.unprivileged import stand_ins_for
from tests.aged_installation.fixtures_broker_traits import aged_broker
from tests.aged_installation.fixtures_choice import is_aged
from tests.aged_installation.fixtures_xids import pass_2_32_xids
from tests.fixtures_memory_folder import has_room, memory_folder


@pytest.fixture(scope="session", autouse=True)
def no_stand_ins_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """As root, servers keep their data outside pytest's closed folders; take that away as well."""
    yield
    for folder in list(stand_ins_for(tmp_path_factory.getbasetemp())):
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def servers_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the session's servers keep their data: in memory, if there is enough of it."""
    if not has_room():
        yield tmp_path_factory.mktemp("servers")
        return
    with memory_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres_server(servers_dir: Path) -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL on a free port; `database_url` is its maintenance database."""
    server = EmbeddedPostgres(servers_dir / "postgres")
    server.start()
    if is_aged():
        pass_2_32_xids(server)
    try:
        yield server
    finally:
        server.stop()
        server.erase()


@pytest.fixture(scope="session")
def kafka_broker(servers_dir: Path) -> Iterator[EmbeddedKafka]:
    """A running Kafka broker on free ports; `bootstrap_servers` is its address."""
    broker = EmbeddedKafka(servers_dir / "kafka")
    broker.start()
    if is_aged():
        aged_broker(broker.bootstrap_servers)
    try:
        yield broker
    finally:
        broker.stop()
        broker.erase()
