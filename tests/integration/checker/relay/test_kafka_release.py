"""KAFKA-20734: the relay does not start on a release that skips markers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from devservers.artifacts import kafka_version
from tests.fixtures_kafka import make_topic
from tests.fixtures_separate_broker import separate_broker
from tests.integration.checker.fixtures_checker_process import start_checker
from tests.integration.checker.relay.test_preflight import assert_refused

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

SKIPPING = "4.3.1"


@pytest.fixture
def skipping(tmp_path: Path) -> Iterator[str]:
    """One broker of a release with the defect, where it is fetched."""
    if not kafka_version(SKIPPING):
        pytest.skip(f"Kafka {SKIPPING} is not fetched: make kafka KAFKA={SKIPPING}")
    with separate_broker(tmp_path, progress_topic=True, release=SKIPPING) as broker:
        yield broker.bootstrap_servers


async def test_a_broker_that_skips_markers_is_refused_unless_an_operator_allows_it(
    database_url: str, skipping: str
) -> None:
    topic = make_topic(skipping, partitions=1)
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO outbox.topic (name) VALUES (%s)", [topic])
    await assert_refused(database_url, skipping, "kafka release")
    allowed = await start_checker(
        "--only",
        "relay",
        database_url=database_url,
        kafka_bootstrap_servers=skipping,
        relay_allow_kafka_release="true",
    )
    assert "relay_refused" not in await allowed.says("started")
    await allowed.stop()
