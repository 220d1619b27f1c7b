"""Wrong clocks of the programs have no effect: only PostgreSQL's clock decides (F13)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from chaos.programs.children import Child
from chaos.programs.false_clock import (
    NoFalseClock,
    api_time,
    false_clock,
    has_false_clock,
    under_clock,
)
from devservers.kafka import EmbeddedKafka
from outbox.clock import SystemClock
from outbox.settings.environment import process_environment
from tests.chaos.fixtures_live_service import LiveService, live_service
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.fixtures_kafka import committed_records, make_topic
from tests.fixtures_new_rows import NEW_HALVES
from tests.fixtures_separate_broker import separate_broker
from tests.fixtures_waiting import wait_for
from tests.integration.failpoints.fixtures_producer import CheckEndpoint, serving

pytestmark = pytest.mark.deep

OFFSETS = {"+3d": timedelta(days=3), "-2h": timedelta(hours=-2)}
TOLERATED = timedelta(minutes=30)
HOUR_SECONDS = 3600
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
STATES = f"""
SELECT convert_from(h.key, 'UTF8')::int4,
    CASE o.decision WHEN 1 THEN 'COMMIT' WHEN 2 THEN 'ROLLBACK' ELSE 'PARKED' END
FROM outbox.half_message h
    LEFT JOIN outbox.op_message o USING (half_id) LEFT JOIN outbox.parked_message p USING (half_id)
WHERE (o.half_id IS NOT NULL OR p.half_id IS NOT NULL) AND {NEW_HALVES}
"""
SCHEDULES = f"""
SELECT convert_from(key, 'UTF8')::int4,
    array_agg(extract(epoch FROM asked_at - prepared_at)::float8 ORDER BY look_id)
FROM outbox.check_attempt JOIN outbox.half_message USING (half_id)
WHERE {NEW_HALVES} GROUP BY half_id, key
"""
LATE_SECONDS = 30.0
"""Far more than a check is ever late here, and far less than the clocks are wrong."""


@contextmanager
def both_under(service: LiveService, clock: str) -> Iterator[None]:
    """Give both programs a false clock for the block, once the API answers."""
    with ExitStack() as stack:
        for child in (service.checker, service.api):
            stack.enter_context(under_clock(child, clock))
        wait_for(lambda: clocked(service.checker) and clocked(service.api), seconds=60)
        wait_for(lambda: api_time(service.api.port), seconds=60)
        yield


def clocked(child: Child) -> bool:
    """Return whether the child's present life has a false clock."""
    return child.pid is not None and has_false_clock(child.pid)


def offset(service: LiveService) -> timedelta:
    """Return by how much the API's clock is ahead."""
    shown = wait_for(lambda: api_time(service.api.port), seconds=60)
    assert shown is not None
    return shown - SystemClock().now()


@pytest.fixture
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A separate broker: its progress topic belongs to one installation at a time."""
    with separate_broker(tmp_path_factory.mktemp("clock"), progress_topic=True) as broker:
        yield broker


@pytest.fixture
def service(
    database_url: str, kafka_broker: EmbeddedKafka, tmp_path: Path
) -> Iterator[LiveService]:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
    with live_service(database_url, kafka_broker.bootstrap_servers, tmp_path) as running:
        yield running


@pytest.mark.postgres
@pytest.mark.kafka
@pytest.mark.chaos
def test_f13_a_wrong_clock_of_the_programs_makes_nothing_due(
    service: LiveService, kafka_broker: EmbeddedKafka
) -> None:
    topic, endpoint = make_topic(kafka_broker.bootstrap_servers, partitions=1), CheckEndpoint()
    with serving(endpoint) as check_url:
        service.put_group("soon", check_url, 1)
        service.put_group("later", check_url, HOUR_SECONDS)
        for number, (clock, wanted) in enumerate(OFFSETS.items(), 1):
            with both_under(service, clock):
                assert abs(offset(service) - wanted) < TOLERATED
                later, soon = service.prepared("later", topic), service.prepared("soon", topic)
                service.commit(service.prepared("later", topic))
                wait_for(partial(endpoint.asked.__getitem__, soon))
                assert not endpoint.asked[later]
                sent = 2 * number  # The endpoint has answered COMMIT for one.
                assert len(committed_records(kafka_broker.bootstrap_servers, topic, sent)) == sent
            wait_for(lambda: not clocked(service.api) and not clocked(service.checker))
            assert abs(offset(service)) < TOLERATED


@pytest.mark.postgres
@pytest.mark.kafka
@pytest.mark.chaos
def test_a28_with_every_host_an_hour_off_and_stepping_a18_ends_the_same_on_the_same_schedule(
    service: LiveService, database_url: str, kafka_broker: EmbeddedKafka, tmp_path: Path
) -> None:
    """Scaled: 60 messages, a second to the first check and between checks, three checks.

    The clocks step at the second of three checks.
    """
    topic = make_topic(kafka_broker.bootstrap_servers, partitions=1)
    clocks = {tmp_path / "api.clock": "+1h", tmp_path / "checker.clock": "-1h"}

    def answer(asked: dict[str, Any]) -> str:
        if asked["attempt"] == 2:
            for file, clock in zip(clocks, ("-1h", "+1h"), strict=True):
                file.write_text(clock)
        return VERDICTS[int(asked["key"]) % 5]

    with ExitStack() as stack:
        for child, (file, clock) in zip(
            (service.api, service.checker), clocks.items(), strict=True
        ):
            file.write_text(clock)
            stack.enter_context(under_clock(child, file))
        endpoint = stack.enter_context(check_endpoint(answer))
        wait_for(lambda: clocked(service.checker) and api_time(service.api.port), seconds=60)
        assert offset(service) > TOLERATED
        register(service, endpoint.url)
        run_producer(service, topic, "-1h")
        with psycopg.connect(database_url, autocommit=True) as connection:
            wait_for(lambda: states(connection) == EXPECTED, seconds=120)
            schedules: dict[int, list[float]] = dict(connection.execute(SCHEDULES).fetchall())
        assert offset(service) < -TOLERATED
    committed = sorted(number for number, end in EXPECTED.items() if end == "COMMIT")
    sent = committed_records(kafka_broker.bootstrap_servers, topic, len(committed))
    assert sorted(int(record.key or b"") for record in sent) == committed
    assert all(
        abs(at - SystemClock().now().timestamp()) < HOUR_SECONDS / 2 for at in endpoint.signed_at
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


def test_without_the_library_the_fault_fails_and_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(NoFalseClock, match="libfaketime"):
        false_clock("+3d")
