"""The whole installation over REST: shards, partitions, health, settings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_kafka import make_topic
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service, running, settings_for
from tests.integration.kafka.health.fixtures_open_transaction import open_transaction

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

LIVENESS_SECONDS = 30


async def data(service: Service, path: str) -> list[dict[str, Any]]:
    """Return the list of a route."""
    answer = await service.client.get(path)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def test_a_partition_shows_where_consumers_stop_and_what_holds_them_up(
    database_url: str, pool: Pool, kafka_broker: EmbeddedKafka
) -> None:
    servers = kafka_broker.bootstrap_servers
    topic, first = make_topic(servers, partitions=1), 0
    await select(pool, "INSERT INTO outbox.topic (name) VALUES (%s)", topic)

    async def partition() -> dict[str, Any]:
        found = await data(service, "/v1/partitions")
        return next(each for each in found if each["topic"] == topic)

    async with running(settings_for(database_url, kafka_bootstrap_servers=servers)) as service:
        assert (await partition())["last_stable_offset"] == first
        with open_transaction(servers, topic, ours=True):
            try:
                async with asyncio.timeout(LIVENESS_SECONDS):
                    while not (behind := await partition())["hangs"]:
                        pass
            except TimeoutError:
                pytest.fail("the partition shows no transaction that hangs")
            assert (behind["last_stable_offset"], behind["end_offset"]) == (first, first + 1)
            assert behind["open_since"] is not None
            assert behind["ours"]
            where = f"describe-producers --topic {topic} --partition 0"
            assert behind["command"].endswith(f"--bootstrap-server {servers} {where}")
        async with asyncio.timeout(LIVENESS_SECONDS):
            while (now := await partition())["last_stable_offset"] == first:
                pass
        assert (now["hangs"], now["open_since"], now["command"]) == (False, None, None)


async def test_without_kafka_the_partitions_are_not_ready_and_the_report_says_why(
    service: Service,
) -> None:
    answer = await service.client.get("/v1/partitions")
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    assert answer.json()["checks"] == {"kafka": "unavailable"}
    checks = {each["check"]: each for each in await data(service, "/v1/doctor")}
    assert checks["kafka"]["verdict"] == "failed"
    assert checks["kafka"]["detail"].startswith("127.0.0.1:9: ")
    assert not any("docker compose" in str(each) for each in checks.values())
    assert checks["postgres writes"]["verdict"] == "ok"
    assert "command" not in checks["migrations"]
