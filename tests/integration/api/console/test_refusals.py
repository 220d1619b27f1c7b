"""What a browser shows when a request is refused: a page with the next step, never a document."""

from __future__ import annotations

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Page, logged_in

pytestmark = pytest.mark.postgres


async def test_a_head_that_is_too_large_is_answered_with_a_page(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        for answer, status, words in (
            (await browser.get(f"/ui/?q={'k' * 8200}"), 414, "The URL is too long"),
            (await browser.get("/ui/", filler="f" * 17_000), 431, "headers are too large"),
        ):
            assert answer.status == status
            assert answer.answer.headers["content-type"] == "text/html; charset=utf-8"
            assert words in answer.text
            assert "To the start page" in answer.text
            assert "kkkk" not in answer.html


async def test_a_refused_form_shows_the_name_of_each_invalid_field_beside_it_and_keeps_the_others(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        message_id = await service.prepared_id()
        at = f"/ui/messages/{message_id}/force-end"
        page = await browser.get(f"/ui/messages/{message_id}")
        refused = await browser.send(page, at, decision="ROLLBACK", operator="Grace", reason="")
        assert refused.status == 422
        assert "/reason" not in refused.text
        assert '<label for="invalid-reason">Reason</label>' in refused.html
        again = refused.forms()[at]
        assert (again["decision"], again["operator"], again["reason"]) == ("ROLLBACK", "Grace", "")
        settled = await browser.send(refused, at, reason="the order does not exist")
        assert "The decision is stored." in settled.text


async def test_a_refused_form_keeps_every_selected_message(database_url: str, pool: Pool) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        both = [await service.prepared_id() for _ in range(2)]
        listed = await browser.get("/ui/")
        form = "/ui/bulk-actions/plan#pick-prepared"
        dry = await browser.send(listed, form, action="rollback", message=both)
        refused = await browser.send(dry, "/ui/bulk-actions", reason="", message=both)
        assert (refused.status, [each in refused.html for each in both]) == (422, [True, True])
        fields = refused.forms()["/ui/bulk-actions"] | {"reason": "r", "message": both}
        started = Page(
            await browser.client.post("/ui/bulk-actions", data=fields, follow_redirects=True)
        )
        assert "0 of 2 done" in started.text


async def test_the_answer_to_a_form_that_is_no_page_of_its_own_is_reloaded_as_its_page(
    database_url: str, pool: Pool
) -> None:
    """In Chromium: `test_browser.py`."""
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        at = "/ui/groups/billing"
        page = await browser.get(at)
        assert "data-page" not in page.html
        tested = await browser.send(page, f"{at}/test")
        assert f'data-page="{at}"' in tested.html
