"""The probes of the service, and its published OpenAPI document."""

from __future__ import annotations

import pytest

from api.http.problems import KINDS
from outbox.postgres.maintenance.heartbeats import PostgresHeartbeats
from outbox.postgres.sessions import connections
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import GROUP, GROUPS, Service, running, settings_for

pytestmark = pytest.mark.postgres


async def test_ready_means_that_all_four_parts_work(service: Service, pool: Pool) -> None:
    answer = await service.client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    assert answer.json()["checks"] == {
        "postgres": "ok",
        "migrations": "ok",
        "checker_heartbeat": "silent: relay, check, sweep",
        "kafka": "ok",
    }
    assert int(answer.headers["retry-after"]) >= 1
    for task in ("relay", "check", "sweep"):
        await PostgresHeartbeats(pool).beat(task)
    await select(pool, "UPDATE outbox.alembic_version SET version_num = '9999' RETURNING 1")
    answer = await service.client.get("/readyz")  # after `migrate up` with the next version
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert set(answer.json()["checks"].values()) == {"ok"}


async def test_a_heartbeat_from_before_the_clock_was_set_back_is_none(
    service: Service, pool: Pool
) -> None:
    for task in ("relay", "check", "sweep"):
        await PostgresHeartbeats(pool).beat(task)
    await select(
        pool,
        "UPDATE outbox.progress SET updated_at = updated_at + interval '1 day'"
        " WHERE name = 'heartbeat:relay'",
    )
    answer = await service.client.get("/readyz")
    assert answer.json()["checks"]["checker_heartbeat"] == "silent: relay"
    metrics = (await service.client.get("/metrics")).text
    assert 'outbox_checker_heartbeat_timestamp_seconds{task="relay"} 0.0' in metrics
    await PostgresHeartbeats(pool).beat("relay")
    assert (await service.client.get("/readyz")).status_code == 200


async def test_without_postgresql_the_service_answers_503_and_keeps_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "WAIT_SECONDS", 0.5)
    settings = settings_for("postgresql://nobody@127.0.0.1:1/none")
    async with running(settings) as service:
        assert (await service.client.get("/livez")).status_code == 200
        ready = await service.client.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["postgres"]) == (503, "unavailable")
        answer = await service.prepare()
        assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert (await service.client.get("/metrics")).status_code == 200


async def test_the_openapi_document_is_valid(service: Service) -> None:
    from openapi_spec_validator import validate

    validate((await service.client.get("/openapi.json")).json())


async def test_every_problem_explains_itself(service: Service) -> None:
    for slug, kind in KINDS.items():
        page = await service.client.get(f"/problems/{slug}")
        assert page.status_code == 200
        assert kind.title in page.text
        assert page.text.startswith(f"{kind.status} {slug}")


async def test_requests_are_counted_by_route_template_never_by_id(service: Service) -> None:
    message_id = await service.prepared_id()
    await service.end(message_id, "COMMIT")
    await service.client.get(f"/v1/half-messages/{message_id}")
    await service.client.get("/nothing/here")
    metrics = (await service.client.get("/metrics")).text
    for route in (
        "/v1/half-messages/{message_id}/end",
        "/v1/half-messages/{message_id}",
        "unmatched",
    ):
        assert f'route="{route}"' in metrics, route
    assert message_id not in metrics
    assert "outbox_db_pool_max 10.0" in metrics
    assert "outbox_build_info{" in metrics


async def test_the_gauges_equal_the_tables(service: Service) -> None:
    ids = [await service.prepared_id() for _ in range(5)]
    await service.end(ids[0], "COMMIT")
    await service.end(ids[1], "ROLLBACK")
    await service.client.post(f"{GROUPS}/{GROUP}/pause", json={"reason": "maintenance"})
    metrics = (await service.client.get("/metrics")).text
    assert 'outbox_half_messages{producer_group="billing",state="PREPARED"} 3.0' in metrics
    assert 'outbox_half_messages{producer_group="billing",state="COMMITTED"} 1.0' in metrics
    assert 'outbox_publish_backlog_messages{topic="invoices.issued"} 1.0' in metrics
    assert 'outbox_check_interval_seconds{producer_group="billing"} 30.0' in metrics
    assert 'outbox_group_paused{producer_group="billing"} 1.0' in metrics
