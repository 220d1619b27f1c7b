"""The console while PostgreSQL is away, or lacks a migration, or metrics have another address."""

from __future__ import annotations

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import browsing, logged_in
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import HALVES, running, settings_for

pytestmark = pytest.mark.postgres


async def test_without_postgresql_a_page_names_what_to_do_and_tries_again() -> None:
    settings = settings_for("postgresql://nobody@127.0.0.1:1/none")
    async with running(settings) as service, browsing(service) as browser:
        page = await browser.get("/ui/parked")
        assert page.status == 503
        assert "docker compose up --detach postgres" in page.text
        assert "outbox doctor" in page.text
        assert '<meta http-equiv="refresh" content="5">' in page.html
        assert "result is unknown" not in page.text


async def test_a_missing_migration_is_named_over_rest_and_on_pages(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        await select(pool, "ALTER TABLE outbox.held_record RENAME TO of_a_later_release")
        answer = await service.client.get(HALVES, params={"state": "COMMITTED"})
        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
        assert "outbox migrate up" in answer.json()["detail"]
        assert answer.json()["checks"] == {"migrations": "behind"}
        assert answer.headers["retry-after"] == "2"
        page = await browser.get("/ui/")
        assert page.status == 503
        assert "outbox migrate up" in page.text
        metrics = await service.client.get("/metrics")
        assert metrics.status_code == 200
