"""Parked messages, groups, publishing, reconciliations, keys and the system as pages."""

from __future__ import annotations

import re

import pytest

from outbox.access import Scope
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import logged_in, until_finished
from tests.integration.api.console.fixtures_overtaken_time import CHECKED, TRIPPED, begin_now
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import Service
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = pytest.mark.postgres

PATHS = (
    *("", "messages", "parked", "groups", "publishing", "reconciliations", "audit", "keys"),
    "system",
)


async def park(service: Service, pool: Pool, group: str, status: int | None, count: int) -> None:
    """Prepare messages of a group whose last check had this result, and park them."""
    for _ in range(count):
        await service.prepared_id(producer_group=group)
    await select(pool, CHECKED, "http_error" if status else "timeout", status)


async def test_parked_messages_are_clustered_by_group_and_error(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.GROUPS_READ, Scope.OPS_FORCE)
    both = logged_in(database_url, pool, *scopes, groups=("billing", "other"))
    async with both as (service, browser):
        await service.put_group("other")
        assert "Nothing is parked." in (await browser.get("/ui/parked")).text
        await park(service, pool, "billing", 500, 3)
        await park(service, pool, "billing", None, 1)
        await park(service, pool, "other", 500, 2)
        await select(pool, PARK)
        page = await browser.get("/ui/parked")
        assert "Looked at 6 parked messages: all that your key may see." in page.text
        cells = re.findall(r"<tr>.*?</tr>", page.html, re.DOTALL)
        rows = [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in cells[1:4]]
        assert [re.sub(r" \d+ s .*", "", row) for row in rows] == [
            "billing http_error 500 all checks are spent 3",
            "other http_error 500 all checks are spent 2",
            "billing timeout all checks are spent 1",
        ]
        [_, narrowed] = re.findall(r'href="([^"]+)">http_error 500</a>', page.html)
        narrow = await browser.get(narrowed.replace("&amp;", "&"))
        assert "PARKED 2" in narrow.text
        dry = await browser.send(narrow, "/ui/bulk-actions/plan", action="recheck")
        assert "matches 2 messages" in dry.text
        started = await browser.send(dry, "/ui/bulk-actions", reason="it is repaired")
        await begin_now(pool)
        assert "2 of 2 done" in (await until_finished(browser, started)).text
        assert "Looked at 4 parked messages" in (await browser.get("/ui/parked")).text


async def test_every_page_is_shown_to_an_administrator_and_names_its_calls(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        await service.end(await service.prepared_id(), "COMMIT")
        for name in (*PATHS, "groups/billing"):
            with subtests.test(name):
                page = await browser.get(f"/ui/{name}")
                assert page.status == 200, page.text
                assert re.search(r"<code>GET /", page.html)


async def test_a_page_beyond_the_scopes_of_the_key_says_which_it_needs(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (_, browser):
        for name, scope in {
            "groups": Scope.GROUPS_READ,
            "reconciliations": Scope.REPORTS_READ,
            "keys": Scope.ADMIN,
        }.items():
            page = await browser.get(f"/ui/{name}")
            assert page.status == 403
            assert f"the key needs {scope}" in page.text


async def test_a_group_is_tested_paused_and_resumed(database_url: str, pool: Pool) -> None:
    scopes = (Scope.GROUPS_READ, Scope.GROUPS_WRITE)
    async with logged_in(database_url, pool, *scopes) as (_, browser):
        at = "/ui/groups/billing"
        tested = await browser.send(await browser.get(at), f"{at}/test")
        assert "Reachable no" in tested.text
        simulated = await browser.send(tested, f"{at}/simulate", transaction_id="known")
        assert re.search(r"\d+ of \d+ cases did not pass", simulated.text)
        assert "a known transaction is decided" in simulated.text
        paused = await browser.send(tested, f"{at}/pause", reason="maintenance of <b>it</b>")
        assert re.search(r"paused since .* UTC by Ada: maintenance of <b>it</b>", paused.text)
        assert "Checks of the group are paused." in paused.text
        resumed = await browser.send(paused, f"{at}/resume", reason="done")
        assert "Checks running" in resumed.text
        await select(pool, TRIPPED, 60, "billing")
        opened = await browser.get(at)
        assert re.search(r"Breaker open : next trial \d{4}-\d\d-\d\d", opened.text)
        closed = await browser.send(opened, f"{at}/close-breaker", reason="it is repaired")
        assert "The breaker is closed: what is due is asked at once." in closed.text
        assert "Breaker closed Checks running" in closed.text
        assert f"{at}/close-breaker" not in closed.forms()
        assert (await browser.send(resumed, f"{at}/pause")).status == 422


async def test_a_closed_breaker_is_no_good_news_beside_checks_that_fail(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.GROUPS_READ, Scope.MESSAGES_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        await service.prepared_id()
        await select(pool, CHECKED, "unknown", 200)
        await service.prepared_id()
        await select(pool, CHECKED, "http_error", 401)
        page = await browser.get("/ui/groups/billing")
        assert "Last checks 1 of 2 http_error 401, 1 of 2 unknown 200" in page.text
        for name in ("billing", ""):
            page = await browser.get(f"/ui/groups/{name}".rstrip("/"))
            assert "closed" in page.text
            assert 'class="good"' not in page.html


async def test_a_run_shows_its_findings_and_its_reports_are_files(
    database_url: str, pool: Pool
) -> None:
    PostgresRunStore(database_url).save(
        make_run("one", "<b>a</b>", totals={"missing": 1}, reports={"html": "<script>x</script>"})
    )
    async with logged_in(database_url, pool, Scope.REPORTS_READ) as (_, browser):
        runs = await browser.get("/ui/reconciliations")
        assert "missing 1" in runs.text
        run = await browser.get("/ui/reconciliations/one")
        assert "<b>a</b>" in run.text
        assert "<b>a</b>" not in run.html
        assert "<b>a</b>" not in (await browser.get("/ui/reconciliations/one?kind=coverage")).text
        report = await browser.get("/ui/reconciliations/one/report.html")
        assert "attachment" in report.answer.headers["content-disposition"]
        assert "sandbox" in report.answer.headers["content-security-policy"]
        assert (await browser.get("/ui/reconciliations/two")).status == 404
        assert (await browser.get("/ui/reconciliations/one?kind=lost")).status == 422


async def test_a_key_is_revoked(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        asked = {"name": "<i>ci</i>", "producer_groups": ["*"], "scopes": ["messages:read"]}
        created = (await service.client.post("/v1/api-keys", json=asked)).json()
        page = await browser.get("/ui/keys")
        assert "<i>ci</i>" in page.text
        assert created["api_key"] not in page.html
        page = await browser.send(page, f"/ui/keys/{created['key_id']}/revoke")
        assert created["key_id"] not in page.html
        assert "The key is revoked" in page.text
