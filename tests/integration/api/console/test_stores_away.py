"""The console while PostgreSQL is away, or lacks a migration, or metrics have another address."""

from __future__ import annotations

import pytest

from api.console.pages import system
from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import browsing, logged_in
from tests.integration.api.fixtures_api_process import free_port
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import HALVES, running, settings_for

pytestmark = pytest.mark.postgres


async def test_every_page_works_while_the_metrics_have_an_address_of_their_own(
    database_url: str, pool: Pool
) -> None:
    elsewhere = f"127.0.0.1:{free_port()}"
    moved = logged_in(database_url, pool, Scope.ADMIN, metrics_bind=elsewhere)
    async with moved as (service, browser):
        await service.prepared_id()
        overview = await browser.get("/ui/overview")
        assert overview.status == 200, overview.text
        assert " billing 1 0 0 " in overview.text
        assert (await browser.get("/ui/publishing")).status == 200
        for key in ({}, dict(service.client.headers)):
            assert (await service.client.get("/metrics", headers=key)).status_code == 404


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


async def test_an_unexpected_error_is_a_page_for_people(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        monkeypatch.setattr(system, "WORST_FIRST", ())
        page = await browser.get("/ui/system")
        assert page.status == 500
        assert page.answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "Internal error" in page.text
        assert "To the start page" in page.text


async def test_a_form_behind_a_proxy_that_changes_the_host_says_what_the_proxy_must_do(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        at = "/ui/groups/billing/pause"
        form = (await browser.get("/ui/groups/billing")).forms()[at] | {"reason": "r"}
        public = {"origin": "https://outbox.example:8443"}
        refused = await browser.client.post(at, data=form, headers=public)
        assert refused.status_code == 403
        assert "A proxy must pass on `Host` as the browser sent it" in refused.text
        kept = public | {"host": "outbox.example:8443"}
        assert (await browser.client.post(at, data=form, headers=kept)).status_code == 303
