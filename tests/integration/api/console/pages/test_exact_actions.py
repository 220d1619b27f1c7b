"""What a page offers to act on, export or show is what it then acts on, exports or shows."""

from __future__ import annotations

import asyncio
import re

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import logged_in
from tests.integration.api.console.fixtures_overtaken_time import begin_now
from tests.integration.api.fixtures_rows import PARK, select

pytestmark = pytest.mark.postgres

OPERATOR_SCOPES = (Scope.MESSAGES_READ, Scope.GROUPS_READ, Scope.OPS_FORCE)


async def test_what_is_prepared_after_the_dry_run_is_left_out(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, *OPERATOR_SCOPES) as (service, browser):
        await service.prepared_id(tags=["mine"])
        page = await browser.get("/ui/messages?state=PREPARED&tag=mine")
        dry = await browser.send(page, "/ui/bulk-actions/plan", action="rollback")
        assert "matches 1 messages" in dry.text
        await service.prepared_id(tags=["mine"])
        started = await browser.send(dry, "/ui/bulk-actions", reason="the database is gone")
        assert "0 of 1 done" in started.text


async def test_an_action_takes_the_selected_messages_and_no_others(
    database_url: str, pool: Pool
) -> None:
    plan, lists = "/ui/bulk-actions/plan", {"": "prepared", "?state=PARKED": "parked"}
    async with logged_in(database_url, pool, *OPERATOR_SCOPES) as (service, browser):
        for search, state in lists.items():
            first, second, other = [await service.prepared_id() for _ in range(3)]
            if state == "parked":
                await select(pool, PARK)
            page = await browser.get(f"/ui/messages{search}")
            assert {*re.findall(boxes(f"pick-{state}"), page.html)} >= {first, second, other}
            form = f"{plan}#pick-{state}"
            dry = await browser.send(page, form, action="rollback", message=[first, second])
            assert "takes 2 of the 2 selected messages" in dry.text
            assert {*re.findall(r'href="/ui/messages/([^"]+)"', dry.html)} == {first, second}
            both = {"message": [first, second]}
            waiting = await browser.send(dry, "/ui/bulk-actions", reason="they are gone", **both)
            assert "0 of 2 done" in waiting.text
            await begin_now(pool)
            async with asyncio.timeout(60):
                while "finished: 2 of 2 done" not in waiting.text:
                    waiting = await browser.get(waiting.path)
            late = await browser.send(page, form, action="commit", message=[first, other])
            assert "takes 1 of the 2 selected messages: the others are settled by now" in late.text
            none = await browser.send(page, form, action="rollback")
            assert (none.status, "Select messages of the list first." in none.text) == (422, True)


def boxes(form: str) -> str:
    """Return the pattern of the check boxes of a form; it finds their messages."""
    return rf'<input type="checkbox" name="message" value="([^"]+)" form="{form}"'
