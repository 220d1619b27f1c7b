"""The proxies on real sockets and servers: each fault takes effect and can be healed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import psycopg
import pytest
from confluent_kafka import Producer

from chaos.proxies.link_faults import Accept, Direction, LinkFaults
from chaos.proxies.proxy_client import ProxiesFailed, ProxyClient, RemoteLink
from chaos.proxies.rules import Action, Rule
from devservers.postgres import EmbeddedPostgres
from tests.chaos.conftest import ProxiedBroker
from tests.fixtures_kafka import committed_records, make_topic
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.deep]

SHORT_SECONDS = 0.3
LONG_SECONDS = 20.0


@pytest.fixture
def echo() -> Iterator[int]:
    """Yield the port of an echo server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1]


def _serve(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_echo, args=(connection,), daemon=True).start()


def _echo(connection: socket.socket) -> None:
    with suppress(OSError), connection:
        while data := connection.recv(1024):
            connection.sendall(data)


@pytest.fixture
def link(proxies: ProxyClient, echo: int, request: pytest.FixtureRequest) -> Iterator[RemoteLink]:
    """Yield a link to that server."""
    opened = proxies.open(request.node.name, "tcp", echo)
    yield opened
    opened.heal()


def connect(link: RemoteLink) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=LONG_SECONDS)


def says(connection: socket.socket, words: bytes, seconds: float = LONG_SECONDS) -> bytes:
    """Send bytes; return the bytes that come back in time."""
    connection.sendall(words)
    connection.settimeout(seconds)
    with suppress(TimeoutError):
        return connection.recv(1024)
    return b""


def test_sent_bytes_arrive_in_both_directions(link: RemoteLink) -> None:
    with closing(connect(link)) as connection:
        assert says(connection, b"one") == b"one"
        assert says(connection, b"two") == b"two"


def test_a_reset_breaks_present_connections_and_no_later_one(link: RemoteLink) -> None:
    with closing(connect(link)) as connection:
        assert says(connection, b"one") == b"one"
        assert link.reset() == 1
        with pytest.raises(ConnectionError):
            says(connection, b"two")
    with closing(connect(link)) as connection:
        assert says(connection, b"three") == b"three"


@pytest.mark.parametrize("direction", list(Direction))
def test_bytes_of_a_cut_direction_arrive_after_the_fault(
    link: RemoteLink, direction: Direction
) -> None:
    with closing(connect(link)) as connection:
        assert says(connection, b"one") == b"one"
        link.cut(direction)
        assert says(connection, b"two", SHORT_SECONDS) == b""
        link.clear_faults()
        connection.settimeout(LONG_SECONDS)
        assert connection.recv(1024) == b"two"


def test_half_open_accepts_silently_and_healing_resets_what_it_accepted(
    link: RemoteLink,
) -> None:
    link.faults(LinkFaults(cut=(Direction.UP, Direction.DOWN), accept=Accept.SILENT))
    with closing(connect(link)) as connection:
        assert says(connection, b"one", SHORT_SECONDS) == b""
        link.clear_faults()
        connection.settimeout(LONG_SECONDS)
        with pytest.raises(ConnectionError):
            connection.recv(1024)
    with closing(connect(link)) as connection:
        assert says(connection, b"two") == b"two"


def test_refused_connections_are_accepted_again_on_the_same_port(link: RemoteLink) -> None:
    port = link.port
    link.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(link)
    link.clear_faults()
    assert link.port == port
    with closing(connect(link)) as connection:
        assert says(connection, b"one") == b"one"


def test_a_slow_drip_delivers_everything(link: RemoteLink) -> None:
    link.faults(LinkFaults(bytes_per_second=200.0, latency_seconds=0.05, jitter_seconds=0.05))
    with closing(connect(link)) as connection:
        connection.sendall(b"x" * 100)
        connection.settimeout(LONG_SECONDS)
        first = connection.recv(1024)
        assert 0 < len(first) < 100
        left = 100 - len(first)
        while left:
            left -= len(connection.recv(1024))


def test_a_link_without_frames_refuses_rules(link: RemoteLink) -> None:
    with pytest.raises(ProxiesFailed, match="has no frames"):
        link.arm(Rule(name="EndTxn", action=Action.HOLD))


# -- Kafka ----------------------------------------------------------------------------------------


def transactional(proxied: ProxiedBroker, name: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": proxied.broker.bootstrap_servers,
            "transactional.id": name,
            "retry.backoff.ms": 200,
            "log_level": 0,
        }
    )


@pytest.mark.kafka
@pytest.mark.parametrize("frame", ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"])
@pytest.mark.parametrize("action", [Action.HOLD, Action.DROP_ANSWER, Action.CUT_MIDDLE])
def test_a_producer_survives_each_broken_frame_by_sending_it_again(
    proxied: ProxiedBroker, frame: str, action: Action
) -> None:
    servers = proxied.broker.bootstrap_servers
    topic = make_topic(servers, partitions=1)
    rule = proxied.link.arm(Rule(name=frame, action=action, owner=topic))
    producer = transactional(proxied, topic)
    producer.init_transactions(LONG_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"one")
    producer.commit_transaction(LONG_SECONDS)
    assert not proxied.link.armed(rule)
    if action is Action.HOLD:
        held = wait_for(lambda: proxied.link.held(rule))
        assert held is not None
        proxied.link.release(held)
    assert [record.value for record in committed_records(servers, topic, 1)] == [b"one"]
    assert {event["name"] for event in proxied.link.events(rule)} == {frame}


@pytest.mark.kafka
def test_a_held_frame_is_overtaken_by_frames_of_other_connections(
    proxied: ProxiedBroker,
) -> None:
    topic = make_topic(proxied.broker.bootstrap_servers, partitions=1)
    rule = proxied.link.arm(Rule(name="InitProducerId", action=Action.HOLD, owner=topic, frames=3))
    transactional(proxied, topic).init_transactions(LONG_SECONDS)
    events = proxied.link.events(rule)
    while len(events) < 2:
        events += wait_for(lambda: proxied.link.events(rule))
    assert [event["what"] for event in events] == ["hold", "stale"]


# -- PostgreSQL -----------------------------------------------------------------------------------


@pytest.fixture
def database_link(proxies: ProxyClient, postgres_server: EmbeddedPostgres) -> Iterator[RemoteLink]:
    """Yield a link to PostgreSQL."""
    link = proxies.open(f"postgres-{id(object())}", "postgres", postgres_server.port)
    yield link
    link.heal()


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("action", "stored"), [(Action.CUT_MIDDLE, 0), (Action.DROP_ANSWER, 1)], ids=["cut", "lost"]
)
def test_a_cut_commit_is_not_performed_and_one_without_an_answer_is(
    database_url: str,
    postgres_server: EmbeddedPostgres,
    database_link: RemoteLink,
    action: Action,
    stored: int,
) -> None:
    proxied = database_url.replace(f":{postgres_server.port}/", f":{database_link.port}/")
    with psycopg.connect(proxied) as connection:
        connection.execute("CREATE TABLE seen (n int)")
        connection.commit()
        connection.execute("INSERT INTO seen VALUES (1)")
        rule = database_link.arm(Rule(name="COMMIT", action=action))
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    assert not database_link.armed(rule)
    with psycopg.connect(database_url) as connection:
        wait_for(lambda: connection.execute("SELECT count(*) FROM seen").fetchone() == (stored,))
