"""One action on all messages that match filters: its dry run, its reason, its end."""

from __future__ import annotations

import re

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Browser, Page, logged_in, until_finished
from tests.integration.api.console.fixtures_overtaken_time import begin_now
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres


BILLING = "state=PREPARED&producer_group=billing&min_checks=0"


async def plan(browser: Browser, filters: str, action: str) -> Page:
    """Ask for a dry run from the start page."""
    page = await browser.get(f"/ui/messages?{filters}")
    return await browser.send(page, "/ui/bulk-actions/plan", action=action)


async def test_all_that_match_are_decided_after_a_dry_run_and_a_reason(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        await service.put_group("other")
        mine = [await service.prepared_id() for _ in range(3)]
        theirs = await service.prepared_id(producer_group="other")
        dry = await plan(browser, BILLING, "rollback")
        assert "matches 3 messages" in dry.text
        assert "Nothing was done." in dry.text
        assert await states(service, mine) == {"PREPARED"}
        unreasoned = await browser.send(dry, "/ui/bulk-actions")
        assert unreasoned.status == 422
        started = await browser.send(dry, "/ui/bulk-actions", reason="the database is gone")
        assert re.search("Begins in (30|29) s; waiting: 0 of 3 done", started.text)
        await begin_now(pool)
        finished = await until_finished(browser, started)
        assert "3 of 3 done" in finished.text
        assert await states(service, mine) == {"ROLLED_BACK"}
        assert await states(service, [theirs]) == {"PREPARED"}
        rows = await select(
            pool, "SELECT operator, reason FROM outbox.audit_log WHERE operator <> 'aged'"
        )
        assert set(rows) == {("Ada", "the database is gone")}


async def states(service: Service, ids: list[str]) -> set[str]:
    """Return the states of messages."""
    found = [(await service.client.get(f"/v1/half-messages/{each}")).json() for each in ids]
    return {each["state"] for each in found}
