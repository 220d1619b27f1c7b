"""What a page offers to act on, export or show is what it then acts on, exports or shows."""

from __future__ import annotations

import asyncio
import csv
import re
from html import unescape

import pytest

from api.console.pages import audit, unresolved
from outbox.access import Scope
from outbox.messages.message_id import parse_message_id
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Browser, Page, logged_in
from tests.integration.api.console.fixtures_overtaken_time import begin_now
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres

OPERATOR_SCOPES = (Scope.MESSAGES_READ, Scope.GROUPS_READ, Scope.OPS_FORCE)
CHECK_ONE = """
INSERT INTO outbox.check_attempt
    (half_id, look_id, round, attempt, asked_at, outcome, http_status, latency_ms, counted, applied)
VALUES (%s, 1, 1, 15, clock_timestamp(), %s, %s, 5, true, false)
"""
AGE = """
UPDATE outbox.half_message SET prepared_at = prepared_at - interval '1 hour' WHERE half_id = %s
"""


async def planned(browser: Browser, q: str, action: str) -> Page:
    """Ask for a dry run of all that match."""
    found = Page(await browser.client.get("/ui/", params={"q": q}))
    return await browser.send(found, "/ui/bulk-actions/plan", action=action)


async def test_an_age_counts_from_the_dry_run(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, *OPERATOR_SCOPES) as (service, browser):
        old, young = [await service.prepared_id(tags=["mine"]) for _ in range(2)]
        await select(pool, AGE, parse_message_id(old)[0])
        dry = await planned(browser, "state:prepared tag:mine age:>2s", "rollback")
        assert "matches 1 messages" in dry.text
        # Two seconds later the other message has that age too.
        page = await browser.get("/ui/?q=state:prepared+tag:mine+age:>2s")
        async with asyncio.timeout(60):
            while young not in page.html:
                page = await browser.get(page.path)
        started = await browser.send(dry, "/ui/bulk-actions", reason="the database is gone")
        assert "0 of 1 done" in started.text


async def test_each_cluster_of_parked_messages_is_searched_and_acted_on_alone(
    database_url: str, pool: Pool
) -> None:
    checks = (("http_error", 500, 3), ("http_error", 404, 2), ("timeout", None, 1), (None, None, 2))
    bound = logged_in(database_url, pool, *OPERATOR_SCOPES, groups=("billing",))
    async with bound as (service, browser):
        for outcome, status, count in checks:
            for _ in range(count):
                half_id = parse_message_id(await service.prepared_id())[0]
                if outcome is not None:
                    await select(pool, CHECK_ONE, half_id, outcome, status)
        await select(pool, PARK)
        page = await browser.get("/ui/parked")
        rows = re.findall(r'<td class="bad"><a href="([^"]+)">([^<]+)</a></td>', page.html)
        assert {name for _, name in rows} == {
            "http_error 500",
            "http_error 404",
            "timeout",
            "not checked",
        }
        expected = {"http_error 500": 3, "http_error 404": 2, "timeout": 1, "not checked": 2}
        for link, name in rows:
            narrow = await browser.get(unescape(link))
            assert f"PARKED {expected[name]}" in narrow.text, name
            dry = await browser.send(narrow, "/ui/bulk-actions/plan", action="recheck")
            assert f"matches {expected[name]} messages" in dry.text, name


async def test_an_action_takes_the_prepared_messages_of_the_list_and_no_parked_ones(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, *OPERATOR_SCOPES) as (service, browser):
        await service.prepared_id()
        await select(pool, PARK)
        shown = await service.prepared_id()
        page = await browser.get("/ui/?q=group:billing")
        assert "All PREPARED that match:" in page.text
        dry = await browser.send(page, "/ui/bulk-actions/plan", action="rollback")
        assert "matches 1 messages in the state PREPARED" in dry.text
        assert re.findall(r'class="id" href="/ui/messages/([^"]+)"', dry.html) == [shown]
        decided = await browser.get("/ui/?q=state:published+group:billing")
        assert "a decision is final" in decided.text
        assert "/ui/bulk-actions/plan" not in decided.forms()


async def test_an_action_takes_the_selected_messages_and_no_others(
    database_url: str, pool: Pool
) -> None:
    plan, lists = "/ui/bulk-actions/plan", {"": "prepared", "?q=state:parked": "parked"}
    async with logged_in(database_url, pool, *OPERATOR_SCOPES) as (service, browser):
        for search, state in lists.items():
            first, second, other = [await service.prepared_id() for _ in range(3)]
            if state == "parked":
                await select(pool, PARK)
            page = await browser.get(f"/ui/{search}")
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


async def test_only_refused_records_are_selected_among_committed_messages(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, *OPERATOR_SCOPES) as (service, browser):
        held, committed = [await service.prepared_id() for _ in range(2)]
        for message_id in (held, committed):
            await service.end(message_id, "COMMIT")
        assert "pick-committed" not in (await browser.get("/ui/?q=group:billing")).html
        await hold(pool, held)
        page = await browser.get("/ui/?q=group:billing")
        assert committed in page.html
        assert re.findall(boxes("pick-committed"), page.html) == [held]
        form = "/ui/bulk-actions/plan#pick-committed"
        dry = await browser.send(page, form, action="drop", message=[held])
        assert "takes 1 of the 1 selected messages. Nothing was done." in dry.text
        await service.end(await service.prepared_id(), "ROLLBACK")
        decided = await browser.get("/ui/?q=state:rolled_back")
        assert 'type="checkbox"' not in decided.html


async def test_what_an_action_ends_with_is_shown_with_its_buttons(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, *OPERATOR_SCOPES) as (service, browser):
        await service.prepared_id()
        dry = await planned(browser, "state:prepared group:billing", "rollback")
        waiting = await browser.send(dry, "/ui/bulk-actions", reason="r")
        refresh = {"hx-request": "true", "hx-target": "live"}
        assert (await browser.get(waiting.path, **refresh)).status == 200
        await begin_now(pool)
        await service.client.post(
            f"/v1/bulk-actions/{waiting.path.rpartition('/')[2]}/resume",
            json={"operator": "o", "reason": "r"},
        )
        async with asyncio.timeout(60):
            part = await browser.get(waiting.path, **refresh)
            while part.status == 200:
                part = await browser.get(waiting.path, **refresh)
        assert (part.status, part.answer.headers["hx-refresh"]) == (204, "true")
        assert not [each for each in (await browser.get(waiting.path)).forms() if "cancel" in each]


async def test_an_export_that_is_cut_off_says_so_in_its_name(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes = (*OPERATOR_SCOPES, Scope.REPORTS_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        for _ in range(3):
            await service.prepared_id(tags=["mine"])
        path = "/ui/export?q=state:prepared+tag:mine"
        assert await exported(browser, path) == ("messages.csv", 3)
        monkeypatch.setattr(unresolved, "EXPORTED", 3)
        assert await exported(browser, path) == ("messages.csv", 3)
        monkeypatch.setattr(unresolved, "EXPORTED", 2)
        assert await exported(browser, path) == ("messages-first-2.csv", 2)
        page = await browser.get("/ui/?q=state:prepared+tag:mine")
        assert "Export as CSV , at most 2" in page.text
        monkeypatch.setattr(audit, "EXPORTED", 1)
        name, rows = await exported(browser, "/ui/audit/export")
        assert (name, rows) == ("audit-first-1.csv", 1)
        assert (await browser.get("/ui/export?q=one-id")).status == 422


async def exported(browser: Browser, path: str) -> tuple[str, int]:
    """Return the name of an exported file and the number of its rows."""
    answer = await browser.client.get(path)
    name = answer.headers["content-disposition"].rpartition("filename=")[2]
    return name, len(list(csv.DictReader(answer.text.splitlines())))


async def test_the_audit_log_names_who_pauses_a_group_and_who_revokes_a_key(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        at = "/ui/groups/billing"
        for action in ("pause", "resume"):
            await browser.send(await browser.get(at), f"{at}/{action}", reason="its disk is full")
        asked = {"name": "ci", "producer_groups": ["*"], "scopes": ["messages:read"]}
        made = (await service.client.post("/v1/api-keys", json=asked)).json()
        await browser.send(await browser.get("/ui/keys"), f"/ui/keys/{made['key_id']}/revoke")
        rows = await select(pool, "SELECT action FROM outbox.audit_log WHERE operator = 'Ada'")
        assert {row[0] for row in rows} == {"group.pause", "group.resume", "key.revoke"}


async def test_the_audit_log_leads_to_an_action_whose_page_was_closed(
    database_url: str, pool: Pool
) -> None:
    scopes = (*OPERATOR_SCOPES, Scope.REPORTS_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        await service.prepared_id()
        dry = await planned(browser, "state:prepared group:billing", "rollback")
        waiting = await browser.send(dry, "/ui/bulk-actions", reason="r")
        log = await browser.get("/ui/audit?action=bulk.force_end&operator=Ada")
        assert f'href="{waiting.path}"' in log.html
        cancelled = await browser.send(await browser.get(waiting.path), f"{waiting.path}/cancel")
        assert "cancelled: 0 of 1 done" in cancelled.text


async def test_many_messages_of_one_word_lead_to_searches_that_go_on(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.MESSAGES_PAYLOAD)
    long_key = "k" * 200
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        await many_of_key(service, long_key, 51)
        found = await browser.get(f"/ui/?q={long_key}")
        assert found.status == 200
        [link] = re.findall(r'href="([^"]+)">prepared</a>', found.html)
        listed = await browser.get(unescape(link))
        assert "PREPARED 50 and more" in listed.text


async def many_of_key(service: Service, key: str, count: int) -> None:
    """Prepare messages of one key."""
    for _ in range(count):
        await service.prepared_id(key=key)


async def test_a_key_that_has_expired_is_marked(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        asked = {"name": "ci", "producer_groups": ["*"], "scopes": ["messages:read"]}
        in_time = {**asked, "expires_at": "2999-01-01T00:00:00Z"}
        made = (await service.client.post("/v1/api-keys", json=in_time)).json()
        assert "expired 2" not in (await browser.get("/ui/keys")).text
        ended = "UPDATE outbox.api_key SET expires_at = clock_timestamp() WHERE key_id = %s"
        await select(pool, ended, made["key_id"])
        assert "expired 2" in (await browser.get("/ui/keys")).text


async def test_the_page_of_publishing_shows_how_long_messages_took(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        page = await browser.get("/ui/publishing")
        assert "Latency, from the decision to Kafka" in page.text
        assert "GET /v1/half-messages?state=PUBLISHED" in page.text
        await service.end(await service.prepared_id(), "COMMIT")
        assert "Latency, from the decision to Kafka" in (await browser.get("/ui/publishing")).text
