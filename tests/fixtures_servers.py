"""One PostgreSQL server and one Kafka broker for a whole test session.

Options choose other releases of them.

Durability settings are the servers' own: what the tests prove must hold as it runs in earnest.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from devservers.unprivileged import stand_ins_for
from tests.fixtures_databases import session_kept
from tests.fixtures_memory_folder import has_room, memory_folder


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a session use other releases."""
    parser.addoption("--postgres-bin", type=Path, help="the programs of another PostgreSQL")
    parser.addoption("--kafka-release", default="", help="another fetched release of Kafka")


NEVER_KILLED: Mapping[str, str] = {
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "9000",
}
"""With the quick sessions of a broker that is killed an idle one takes nearly twice the CPU."""
WITH_RULES: Mapping[str, str] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:nobody",
}
"""A test may forbid something about a topic of its own; what no rule names is allowed."""
LEFT_OVER: Mapping[str, str] = {"zookeeper.connect": "left.over:2181"}
"""What an operator's file may still hold from the time of an older broker."""


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
def postgres_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL on a free port; `database_url` is its maintenance database."""
    servers_dir: Path = request.getfixturevalue("servers_dir")
    binaries: Path | None = request.config.getoption("--postgres-bin")
    server = EmbeddedPostgres(servers_dir / "postgres", binaries=binaries)
    server.start()
    try:
        with session_kept(server.database_url):
            yield server
    finally:
        server.stop()
        server.erase()


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """A running Kafka broker on free ports; `bootstrap_servers` is its address."""
    servers_dir: Path = request.getfixturevalue("servers_dir")
    settings = {**NEVER_KILLED, **WITH_RULES, **LEFT_OVER}
    release: str = request.config.getoption("--kafka-release")
    broker = EmbeddedKafka(servers_dir / "kafka", settings=settings, release=release)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
        broker.erase()
