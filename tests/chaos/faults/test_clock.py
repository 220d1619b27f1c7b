"""Wrong clocks of the programs have no effect: only PostgreSQL's clock decides."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from chaos.programs import Program
from devservers.kafka import EmbeddedKafka
from outbox.clock import SystemClock
from outbox.settings.environment import process_environment
from tests.chaos.fixtures_live_service import LiveService, live_service
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.fixtures_databases import migrate
from tests.fixtures_false_clock import SteppingPostgres, false_clock
from tests.fixtures_kafka import committed_records, make_topic, read_committed
from tests.fixtures_separate_broker import separate_broker
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.deep

HOUR_SECONDS = 3600
DAY_SECONDS = 24 * HOUR_SECONDS
GROUP = "account"
PRODUCER = """
import sys
from outbox_client import LocalTransactionState, Message, TransactionProducer
url, group, topic = sys.argv[1:]
with TransactionProducer(url, group, api_key="any") as producer:
    for number in range(60):
        half = producer.prepare(Message(topic, "points", key=str(number)))
        if number % 5 < 2:
            producer.end(half.message_id, LocalTransactionState(["COMMIT", "ROLLBACK"][number % 5]))
"""
VERDICTS = {2: "COMMIT", 3: "ROLLBACK", 4: "UNKNOWN"}
MESSAGES = 60
ENDS = ("COMMIT", "ROLLBACK", "COMMIT", "ROLLBACK", "PARKED")
"""What becomes of message n: the entry at n mod 5."""
EXPECTED = {number: ENDS[number % 5] for number in range(MESSAGES)}
STATES = """
SELECT convert_from(h.key, 'UTF8')::int4,
    CASE o.decision WHEN 1 THEN 'COMMIT' WHEN 2 THEN 'ROLLBACK' ELSE 'PARKED' END
FROM outbox.half_message h
    LEFT JOIN outbox.op_message o USING (half_id) LEFT JOIN outbox.parked_message p USING (half_id)
WHERE (o.half_id IS NOT NULL OR p.half_id IS NOT NULL)
"""
SCHEDULES = """
SELECT convert_from(key, 'UTF8')::int4,
    array_agg(extract(epoch FROM asked_at - prepared_at)::float8 ORDER BY look_id)
FROM outbox.check_attempt JOIN outbox.half_message USING (half_id)
GROUP BY half_id, key
"""
LATE_SECONDS = 30.0
"""Far more than a check is ever late here, and far less than the clocks are wrong."""


@contextmanager
def under_clock(program: Program, clock: Path) -> Iterator[None]:
    """Restart a program under a false clock for the block.

    Not one with librdkafka: libfaketime does not know the C11 function by which it waits.
    """
    true, false = program.environment, false_clock(clock)
    program.environment = lambda life: {**true(life), **false}
    wait_for(program.kill)
    wait_for(lambda: has_false_clock(program))
    try:
        yield
    finally:
        program.environment = true


def has_false_clock(program: Program) -> bool:
    """Return whether a program runs under a false clock."""
    try:
        return b"\0FAKETIME" in b"\0" + Path(f"/proc/{program.pid}/environ").read_bytes()
    except OSError:
        return False


@pytest.fixture
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A separate broker: its progress topic belongs to one installation at a time."""
    with separate_broker(tmp_path_factory.mktemp("clock"), progress_topic=True) as broker:
        yield broker


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SteppingPostgres]:
    """Yield a server with an installation, whose clock can be set: others are then wrong."""
    running = SteppingPostgres(tmp_path / "postgres")
    running.start()
    try:
        migrate(running.database_url)
        yield running
    finally:
        running.stop()
        running.erase()


@pytest.mark.postgres
@pytest.mark.kafka
@pytest.mark.chaos
def test_f13_a_wrong_clock_of_the_programs_makes_nothing_due(
    server: SteppingPostgres, kafka_broker: EmbeddedKafka, tmp_path: Path
) -> None:
    """They are three days ahead of PostgreSQL. In the next test some fall an hour behind it."""
    servers = kafka_broker.bootstrap_servers
    topic = make_topic(servers, partitions=1)
    server.step("-3d")
    with (
        live_service(server.database_url, servers, tmp_path) as service,
        check_endpoint(lambda _: "COMMIT") as endpoint,
    ):
        service.put_group("soon", endpoint.url, 1)
        service.put_group("later", endpoint.url, HOUR_SECONDS)
        later, soon = service.prepared("later", topic), service.prepared("soon", topic)
        service.commit(service.prepared("later", topic))
        wait_for(lambda: endpoint.asked(soon))
        assert endpoint.asked(later) == []
        records = read_committed(servers, topic, 2)
    assert len(records) == 2
    last_days = 1000 * (SystemClock().now().timestamp() - 2 * DAY_SECONDS)
    assert all(record.timestamp()[1] < last_days for record in records), "PostgreSQL's time"


@pytest.mark.postgres
@pytest.mark.kafka
@pytest.mark.chaos
def test_a28_with_every_host_an_hour_off_and_stepping_a18_ends_the_same_on_the_same_schedule(
    server: SteppingPostgres, kafka_broker: EmbeddedKafka, tmp_path: Path
) -> None:
    """Scaled: 60 messages, a second to the first check and between checks, three checks.

    PostgreSQL is an hour behind API and relay. The clock of the checks steps at the second of three
    checks, from two hours ahead of PostgreSQL to an hour behind it.
    """
    servers, clock = kafka_broker.bootstrap_servers, tmp_path / "checks.clock"
    topic = make_topic(servers, partitions=1)
    clock.write_text("+1h")
    server.step("-1h")

    def answer(asked: dict[str, Any]) -> str:
        if asked["attempt"] == 2:
            clock.write_text("-2h")
        return VERDICTS[int(asked["key"]) % 5]

    with (
        live_service(
            server.database_url, servers, tmp_path, checkers=("check,sweep", "relay")
        ) as service,
        under_clock(service.checker, clock),
        check_endpoint(answer) as endpoint,
        psycopg.connect(server.database_url, autocommit=True) as connection,
    ):
        register(service, endpoint.url)
        run_producer(service, topic, "-2h")
        wait_for(lambda: states(connection) == EXPECTED, seconds=120)
        schedules: dict[int, list[float]] = dict(connection.execute(SCHEDULES).fetchall())
    committed = sorted(number for number, end in EXPECTED.items() if end == "COMMIT")
    sent = committed_records(servers, topic, len(committed))
    assert sorted(int(record.key or b"") for record in sent) == committed
    assert all(
        abs(at + HOUR_SECONDS - SystemClock().now().timestamp()) < HOUR_SECONDS / 2
        for at in endpoint.signed_at
    )
    assert {number: len(ages) for number, ages in schedules.items()} == {
        number: 3 if end == "PARKED" else 1
        for number, end in EXPECTED.items()
        if number % 5 in VERDICTS
    }
    for ages in schedules.values():
        gaps = [later - earlier for earlier, later in pairwise([0.0, *ages])]
        assert all(1 <= gap < 1 + LATE_SECONDS for gap in gaps)


def register(service: LiveService, check_url: str) -> None:
    body = {"check_url": check_url, "check_interval_seconds": 1, "transaction_timeout_seconds": 1}
    url = f"{service.url}/producer-groups/{GROUP}"
    assert httpx2.put(url, json={**body, "check_max": 3}, timeout=60).status_code == 201


def run_producer(service: LiveService, topic: str, clock: str) -> None:
    """Prepare every message, and end two of five, in a process with a false clock."""
    subprocess.run(
        [sys.executable, "-c", PRODUCER, f"http://127.0.0.1:{service.api.port}", GROUP, topic],
        env={**process_environment(), **false_clock(clock)},
        check=True,
        timeout=120,
    )


def states(connection: psycopg.Connection[Any]) -> dict[int, str]:
    """Return what became of each message that is decided or parked, by its number."""
    return dict(connection.execute(STATES).fetchall())
