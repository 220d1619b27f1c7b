"""The clocks of the programs may be wrong: only PostgreSQL's makes anything due (F13)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import psycopg
import pytest

from chaos.clocks import NoFalseClock, false_clock, has_false_clock, time_told, under_clock
from chaos.programs import Child
from cli.embedded.kafka import EmbeddedKafka
from outbox.clock import SystemClock
from outbox.publication.progress_topic import ensure_progress_topic
from tests.chaos.live_service import LiveService, live_service
from tests.integration.failpoints.producer import CheckEndpoint, serving
from tests.kafka import committed_records, make_topic
from tests.waiting import wait_for

OFFSETS = {"+3d": timedelta(days=3), "-2h": timedelta(hours=-2)}
TOLERATED = timedelta(minutes=30)
HOUR_SECONDS = 3600


@contextmanager
def both_under(service: LiveService, clock: str) -> Iterator[None]:
    """Give both programs a false clock for the block, which begins when the API answers."""
    with ExitStack() as stack:
        for child in (service.checker, service.api):
            stack.enter_context(under_clock(child, clock))
        wait_for(lambda: clocked(service.checker) and clocked(service.api), seconds=60)
        wait_for(lambda: time_told(service.api.port), seconds=60)
        yield


def clocked(child: Child) -> bool:
    """Tell whether its present life has a false clock."""
    return child.pid is not None and has_false_clock(child.pid)


def offset(service: LiveService) -> timedelta:
    """Return how far the API's clock is ahead."""
    told = wait_for(lambda: time_told(service.api.port), seconds=60)
    assert told is not None
    return told - SystemClock().now()


@pytest.fixture
def service(
    database_url: str, kafka_broker: EmbeddedKafka, tmp_path: Path
) -> Iterator[LiveService]:
    ensure_progress_topic(kafka_broker.bootstrap_servers, replication=1)
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
                sent = 2 * number  # The endpoint has said COMMIT of one.
                assert len(committed_records(kafka_broker.bootstrap_servers, topic, sent)) == sent
            wait_for(lambda: not clocked(service.api) and not clocked(service.checker))
            assert abs(offset(service)) < TOLERATED


def test_without_the_library_the_fault_fails_and_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(NoFalseClock, match="libfaketime"):
        false_clock("+3d")
