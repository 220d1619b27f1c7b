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


async def test_an_action_is_cancelled_before_it_begins(database_url: str, pool: Pool) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        message_id = await service.prepared_id()
        dry = await plan(browser, BILLING, "rollback")
        waiting = await browser.send(dry, "/ui/bulk-actions", reason="r")
        cancelled = await browser.send(waiting, f"{waiting.path}/cancel")
        assert "cancelled: 0 of 1 done" in cancelled.text
        assert "Nothing more is done of this action." in cancelled.text
        assert not [action for action in cancelled.forms() if action.endswith("/cancel")]
        await begin_now(pool)
        other = await browser.send(
            await plan(browser, BILLING, "recheck"),
            "/ui/bulk-actions",
            reason="it is next in the queue",
        )
        await begin_now(pool)
        await until_finished(browser, other)
        assert await states(service, [message_id]) == {"PREPARED"}


async def test_an_action_needs_a_filter_and_the_scope(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        message_id = await service.prepared_id()
        page = await browser.get("/ui/messages?producer_group=billing")
        assert "Your key needs the scope ops:force." in page.text
        fields = page.forms()["/ui/bulk-actions/plan"] | {"action": "rollback"}
        csrf = page.forms()["/ui/logout"]
        dry, path = "/ui/bulk-actions/plan", "/ui/bulk-actions"
        for bad, status in (
            ({}, 403),
            ({"producer_group": ""}, 422),
            ({"action": "destroy"}, 422),
        ):
            form = fields | {"reason": "r"} | bad
            assert (await browser.client.get(dry, params=form)).status_code == status
            assert (await browser.client.post(path, data=form | csrf)).status_code == status
        assert await states(service, [message_id]) == {"PREPARED"}


async def states(service: Service, ids: list[str]) -> set[str]:
    """Return the states of messages."""
    found = [(await service.client.get(f"/v1/half-messages/{each}")).json() for each in ids]
    return {each["state"] for each in found}
