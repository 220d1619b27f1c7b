"""Messages by the place of their record in Kafka, and by the trace of their prepare."""

from __future__ import annotations

import pytest

from devservers.kafka import EmbeddedKafka
from tests.integration.api.fixtures_kafka_log import KafkaLog
from tests.integration.api.fixtures_service import Service, running, settings_for

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


async def test_a_record_names_its_message(database_url: str, kafka_broker: EmbeddedKafka) -> None:
    servers = kafka_broker.bootstrap_servers
    log = KafkaLog(servers)
    async with running(settings_for(database_url, kafka_bootstrap_servers=servers)) as service:
        assert (await service.put_group()).status_code == 201
        message_id = await service.prepared_id()
        topic, partition, ours = log.write(message_id)
        _, _, strangers = log.write(None)
        _, _, hostile = log.write("not an id")
        found = await service.client.get(f"/v1/records/{topic}/{partition}/{ours}")
        assert found.json() == {
            "message_id": message_id,
            "topic": topic,
            "partition": partition,
            "offset": ours,
        }
        for place in (
            f"{topic}/0/{strangers}",
            f"{topic}/0/{hostile}",
            f"{topic}/0/{hostile + 1}",
            f"{topic}/1/{ours}",
            f"nothing/0/{ours}",
        ):
            answer = await service.client.get(f"/v1/records/{place}")
            assert (answer.status_code, answer.json()["code"]) == (404, "message-not-found")
        for bad in (f"{topic}/0/-1", f"{topic}/x/0", f"{topic}/0/{2**63}"):
            assert (await service.client.get(f"/v1/records/{bad}")).status_code == 422


async def test_without_kafka_a_record_is_not_looked_for(service: Service) -> None:
    answer = await service.client.get("/v1/records/t/0/0")
    assert (answer.status_code, answer.json()["checks"]) == (503, {"kafka": "unavailable"})
