"""Parked messages, groups, publishing, reconciliations, keys and the system as pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

import pytest

from api.console.pages import parked
from outbox.access import Scope
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import logged_in, until_finished
from tests.integration.api.console.fixtures_overtaken_time import CHECKED, TRIPPED, begin_now
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import Service
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_finding, make_run

pytestmark = pytest.mark.postgres

DUE = """
WITH opened AS (
    INSERT INTO outbox.check_class (producer_group_id, delay_seconds, position)
    SELECT id, 7, 0 FROM outbox.producer_group WHERE name = 'billing'
    RETURNING producer_group_id, delay_seconds
)
INSERT INTO outbox.check_queue (
    producer_group_id, delay_seconds, id,
    half_id, round, check_count, only_unknown, age_from, due_at)
SELECT producer_group_id, delay_seconds, half_id, half_id, 1, 0, true, prepared_at, prepared_at
FROM outbox.half_message JOIN opened USING (producer_group_id)
"""
PATHS = (
    *("overview", "parked", "groups", "publishing", "reconciliations", "audit", "keys"),
    "system",
)


async def park(service: Service, pool: Pool, group: str, status: int | None, count: int) -> None:
    """Prepare messages of a group whose last check had this result, and park them."""
    for _ in range(count):
        await service.prepared_id(producer_group=group)
    await select(pool, CHECKED, "http_error" if status else "timeout", status)


async def test_parked_messages_are_clustered_by_group_error_and_endpoint(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.GROUPS_READ, Scope.OPS_FORCE)
    both = logged_in(database_url, pool, *scopes, groups=("billing", "other"))
    async with both as (service, browser):
        await service.put_group("other", check_url="http://127.0.0.1:8998/other")
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
            "billing http_error 500 http://127.0.0.1:8999/check breaker closed check_max 3",
            "other http_error 500 http://127.0.0.1:8998/other breaker closed check_max 2",
            "billing timeout http://127.0.0.1:8999/check breaker closed check_max 1",
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


async def test_a_cluster_of_parked_messages_shows_how_the_checks_of_its_group_go_now(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.GROUPS_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        await park(service, pool, "billing", 500, 1)
        await select(pool, PARK)
        assert "8999/check breaker closed check_max" in (await browser.get("/ui/parked")).text
        await select(pool, TRIPPED, 60, "billing")
        assert "8999/check breaker open check_max" in (await browser.get("/ui/parked")).text
        at = "/v1/producer-groups/billing"
        await service.client.post(f"{at}/pause", json={"reason": "it is repaired at noon"})
        paused = (await browser.get("/ui/parked")).text
        assert "8999/check paused: it is repaired at noon check_max" in paused


async def test_of_many_groups_with_parked_messages_only_the_first_are_looked_up(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parked, "GROUPS_LOOKED", 1)
    scopes = (Scope.MESSAGES_READ, Scope.GROUPS_READ)
    both = logged_in(database_url, pool, *scopes, groups=("billing", "other"))
    async with both as (service, browser):
        await service.put_group("other")
        await park(service, pool, "other", 500, 2)
        await park(service, pool, "billing", 500, 1)
        await select(pool, PARK)
        page = (await browser.get("/ui/parked")).text
        assert "other http_error 500 http://127.0.0.1:8999/check breaker closed" in page
        assert "billing http_error 500 - - check_max" in page


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
                assert re.search(r"<code>(outbox|curl) ", page.html)


async def test_the_metrics_name_a_page_and_not_its_address(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        message_id = await service.prepared_id()
        await browser.get(f"/ui/messages/{message_id}")
        metrics = (await service.client.get("/metrics")).text
        assert 'route="/ui/messages/{message_id}"' in metrics
        assert message_id not in metrics


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


async def test_a_bound_key_sees_no_number_of_another_group(database_url: str, pool: Pool) -> None:
    scopes = tuple(each for each in Scope if each is not Scope.ADMIN)
    bound = logged_in(database_url, pool, *scopes, groups=("billing",))
    async with bound as (service, browser):
        await service.put_group("other-group")
        await service.prepared_id(producer_group="other-group")
        await service.end(await service.prepared_id(producer_group="other-group"), "COMMIT")
        for name in PATHS:
            page = await browser.get(f"/ui/{name}")
            assert "other-group" not in page.html, name
        overview = await browser.get("/ui/overview")
        assert re.search(r"PREPARED 0 -", overview.text)
        assert (await browser.get("/ui/groups/other-group")).status == 404
        page = await browser.get("/ui/groups/billing")
        fields = page.forms()["/ui/groups/billing/pause"] | {"reason": "r"}
        for action in ("pause", "test"):
            answer = await browser.client.post(f"/ui/groups/other-group/{action}", data=fields)
            assert answer.status_code == 404


async def test_a_group_is_tested_paused_and_resumed(database_url: str, pool: Pool) -> None:
    scopes = (Scope.GROUPS_READ, Scope.GROUPS_WRITE)
    async with logged_in(database_url, pool, *scopes) as (_, browser):
        at = "/ui/groups/billing"
        tested = await browser.send(await browser.get(at), f"{at}/test")
        assert "Reachable no" in tested.text
        paused = await browser.send(tested, f"{at}/pause", reason="maintenance of <b>it</b>")
        assert "paused: maintenance of <b>it</b>" in paused.text
        assert "Checks of the group are paused." in paused.text
        resumed = await browser.send(paused, f"{at}/resume", reason="done")
        assert "Checks running" in resumed.text
        assert (await browser.send(resumed, f"{at}/pause")).status == 422


async def test_a_form_that_is_refused_leads_back_to_its_page(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        at = "/ui/groups/billing"
        form = (await browser.get(at)).forms()[f"{at}/pause"]
        for referrer, link in (
            (f"http://localhost{at}?done=resumed", f'<a href="{at}">Back'),
            ("http://evil.example/ui/groups/billing", '<a href="/ui/">To the start page'),
        ):
            answer = await browser.client.post(
                f"{at}/pause", data=form, headers={"referer": referrer}
            )
            assert answer.status_code == 422
            assert link in answer.text
            assert "evil" not in answer.text


async def test_a_group_shows_how_its_checks_go_and_how_old_its_secret_is(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.GROUPS_READ, Scope.GROUPS_WRITE, Scope.MESSAGES_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        at = "/ui/groups/billing"
        young = await browser.get(at)
        assert "Success rate no message was checked" in young.text
        assert re.search(r"Secret \d+ s old: made ", young.text)
        for outcome, status in (("commit", 200), ("unknown", 200), ("http_error", 500)):
            await service.prepared_id()
            await select(pool, CHECKED, outcome, status)
        await service.client.post(
            "/v1/producer-groups/billing/rotate-secret", json={"overlap_seconds": 3600}
        )
        page = await browser.get(at)
        assert "66 % : 2 of the last 3 checks got a valid answer" in page.text
        assert "p95 of checks 5 ms" in page.text
        assert "In flight none: no check is due" in page.text
        assert "the one before it signs too until" in page.text
        assert "GET /v1/producer-groups/billing/health" in page.text
        await select(pool, DUE)
        assert "In flight 3 due, at most 8 in flight at once" in (await browser.get(at)).text
        paused = await browser.send(page, f"{at}/pause", reason="r")
        assert "In flight 3 due, which wait for the resume" in paused.text


async def test_a_group_that_may_not_be_changed_says_why(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.GROUPS_READ) as (_, browser):
        page = await browser.get("/ui/groups/billing")
        assert page.html.count("disabled") == 3
        assert "Your key needs the scope groups:write." in page.text
        assert "Your key needs the scope messages:read." in page.text


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
        assert "<b>a</b>" not in (await browser.get("/ui/reconciliations/one?kind=stuck")).text
        report = await browser.get("/ui/reconciliations/one/report.html")
        assert "attachment" in report.answer.headers["content-disposition"]
        assert "sandbox" in report.answer.headers["content-security-policy"]
        assert (await browser.get("/ui/reconciliations/two")).status == 404
        assert (await browser.get("/ui/reconciliations/one?kind=lost")).status == 422


async def test_the_findings_of_a_run_say_what_they_mean_and_what_to_do(
    database_url: str, pool: Pool
) -> None:
    steps = {"meaning": "its topic has <no> record", "action": "Publish it.", "command": "outbox a"}
    reported = [
        {**steps, "finding_id": "f1", "class": "LOST"},
        {**steps, "finding_id": "f2", "class": "LOST", "command": "outbox b"},
        {**steps, "finding_id": "f3", "class": "PARKED", "command": "outbox c"},
    ]
    document = {"run_id": "one", "schema_version": 1, "verdict": "findings", "sentence": ""}
    document |= {"totals": {"missing": 2}, "findings": reported, "findings_omitted": 0}
    PostgresRunStore(database_url).save(
        make_run("one", "f1", "f2", reports={"json": json.dumps(document)})
    )
    async with logged_in(database_url, pool, Scope.REPORTS_READ) as (_, browser):
        page = await browser.get("/ui/reconciliations/one")
        assert "LOST : its topic has <no> record. Publish it. outbox a" in page.text
        assert "outbox b" not in page.text
        assert "PARKED" not in page.text


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


async def test_the_totals_of_a_run_lead_to_its_findings_and_they_to_their_messages(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ, Scope.REPORTS_READ) as (
        service,
        browser,
    ):
        lost, other = [await service.prepared_id() for _ in range(2)]
        findings = tuple(
            replace(make_finding(name), topic=topic, detail={"message_id": named, "decided_at": at})
            for name, topic, named, at in (
                ("f1", "points & co", lost, "2026-01-01T10:20:00+00:00"),
                ("f2", "orders", other, "2026-01-01T11:20:00+00:00"),
            )
        )
        run = make_run("one", findings=findings, totals={"missing": 2})
        PostgresRunStore(database_url).save(run)
        page = await browser.get("/ui/reconciliations/one")
        assert "GET /v1/reconciliations/one/totals" in page.text
        words = r"missing (orders|points & co) 2026-01-01 1[01]:00:00 UTC 1 1"
        assert len(re.findall(words, page.text)) == 2
        [link] = re.findall(r'href="(\?kind=missing&amp;topic=points[^"]+)"', page.html)
        narrow = await browser.get(f"/ui/reconciliations/one{unescape(link)}")
        assert (lost in narrow.html, other in narrow.html) == (True, False)
        assert "discrepancies?kind=missing&topic=points+%26+co&hour=2026-01-01T10" in narrow.text
        assert (await browser.get(f"/ui/messages/{lost}")).status == 200
