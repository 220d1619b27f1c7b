"""Lists of messages, the page of a message, and what finds an id."""

from __future__ import annotations

import csv
import re

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import logged_in
from tests.integration.api.fixtures_service import TOPIC

pytestmark = pytest.mark.postgres


async def test_the_list_of_messages_shows_what_is_not_finished(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        prepared, committed, rolled = [await service.prepared_id() for _ in range(3)]
        await service.end(committed, "COMMIT")
        await service.end(rolled, "ROLLBACK")
        page = await browser.get("/ui/messages")
        assert page.status == 200
        assert prepared in page.html
        assert committed in page.html
        assert rolled not in page.html
        assert "GET /v1/half-messages?limit=50&state=PREPARED" in page.text


async def test_the_fields_filter_and_are_in_the_address(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        await service.put_group("other")
        mine = await service.prepared_id(transaction_id="t-1", tags=["red"])
        theirs = await service.prepared_id(producer_group="other")
        for fields, shown in (
            ({"producer_group": "other", "state": "PREPARED"}, (theirs,)),
            ({"topic": TOPIC, "tag": "red", "transaction_id": "t-1"}, (mine,)),
        ):
            page = await browser.send(await browser.get("/ui/messages"), "/ui/messages", **fields)
            found = {each for each in (mine, theirs) if each in page.html}
            assert (page.status, found) == (200, set(shown)), fields
        wrong = await browser.get("/ui/messages?min_checks=many")
        assert (wrong.status, "min_checks" in wrong.text) == (422, True)


async def test_one_box_finds_a_message_by_its_id_its_transaction_and_its_key(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.MESSAGES_PAYLOAD)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        message_id = await service.prepared_id(transaction_id="invoice/7731", key="cust-58")
        for word in (message_id, "invoice/7731", "cust-58"):
            page = await browser.client.get("/ui/find", params={"id": word}, follow_redirects=True)
            assert page.url.path == f"/ui/messages/{message_id}", word
        page = await browser.client.get("/ui/find", params={"id": "nothing"})
        assert page.status_code == 404
        assert "No message has this" in page.text


async def test_a_page_of_a_list_leads_to_the_next(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        ids = {await service.prepared_id() for _ in range(60)}
        page = await browser.get("/ui/messages?state=PREPARED")
        assert "the next page goes on" in page.text
        [following] = re.findall(r'href="([^"]+)">Next page', page.html)
        second = await browser.get(following.replace("&amp;", "&"))
        first_ids = {each for each in ids if each in page.html}
        second_ids = {each for each in ids if each in second.html}
        assert (len(first_ids), first_ids | second_ids) == (50, ids)
        assert not first_ids & second_ids
        assert "Looked at every message in this state." in second.text


async def test_a_refresh_does_not_renew_the_session(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        message_id = await service.prepared_id()
        part = await browser.get("/ui/messages", **{"hx-request": "true", "hx-target": "live"})
        assert message_id in part.html
        assert "set-cookie" not in part.answer.headers
        browser.client.cookies.clear()
        part = await browser.get("/ui/messages", **{"hx-request": "true", "hx-target": "live"})
        assert (part.status, part.answer.headers["hx-refresh"]) == (204, "true")


async def test_an_export_holds_exactly_what_matches_and_no_formula(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        await service.put_group("other")
        ids = {await service.prepared_id(transaction_id=f"=cmd|{n}") for n in range(3)}
        await service.prepared_id(producer_group="other")
        answer = await browser.client.get("/ui/export?producer_group=billing")
        rows = list(csv.DictReader(answer.text.splitlines()))
        assert {row["message_id"] for row in rows} == ids
        assert all(row["transaction_id"].startswith("'=") for row in rows)
        assert "attachment" in answer.headers["content-disposition"]


async def test_a_key_bound_to_a_group_sees_that_group_alone(database_url: str, pool: Pool) -> None:
    bound = logged_in(database_url, pool, Scope.MESSAGES_READ, groups=("billing",))
    async with bound as (service, browser):
        await service.put_group("other")
        mine = await service.prepared_id()
        theirs = await service.prepared_id(producer_group="other", transaction_id="t-2")
        for path in ("/ui/messages", "/ui/messages?producer_group=other", "/ui/export"):
            page = await browser.get(path)
            assert theirs not in page.html
            assert (mine in page.html) is (path != "/ui/messages?producer_group=other")
        for path in (f"/ui/messages/{theirs}", "/ui/find?id=t-2"):
            assert (await browser.get(path)).status == 404


async def test_a_message_shows_its_facts_its_timeline_and_what_consumers_see(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        message_id = await service.prepared_id(transaction_id="t-1")
        page = await browser.get(f"/ui/messages/{message_id}")
        assert "not yet visible to consumers" in page.text
        assert re.search(r"prepared .* UTC", page.text)
        assert f"GET /v1/half-messages/{message_id}/history" in page.text
        await service.end(message_id, "ROLLBACK")
        page = await browser.get(f"/ui/messages/{message_id}")
        assert "never visible to consumers" in page.text
        assert 'class="gap"' in page.html


async def test_a_control_that_the_key_may_not_use_is_disabled_and_says_why(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        message_id = await service.prepared_id(value="the secret value")
        page = await browser.get(f"/ui/messages/{message_id}")
        assert page.html.count("<fieldset disabled>") == 2
        assert "Your key needs the scope ops:force." in page.text
        assert "Your key needs the scope messages:payload." in page.text
        hidden = await browser.get(f"/ui/messages/{message_id}?payload=1")
        assert hidden.status == 403
        assert "the secret value" not in page.html + hidden.html
        fields = page.forms()[f"/ui/messages/{message_id}/recheck"] | {"reason": "r"}
        answer = await browser.client.post(f"/ui/messages/{message_id}/recheck", data=fields)
        assert answer.status_code == 403


async def test_an_operator_checks_again_and_decides_and_the_audit_log_has_the_name(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        message_id = await service.prepared_id()
        at = f"/ui/messages/{message_id}"
        page = await browser.send(await browser.get(at), f"{at}/recheck", reason="it is repaired")
        assert (page.path, page.status) == (f"{at}?done=rechecked", 200)
        assert "The check is due now." in page.text
        empty = await browser.send(page, f"{at}/force-end", reason="r")
        assert empty.status == 422
        no_reason = await browser.send(page, f"{at}/force-end", decision="COMMIT")
        assert no_reason.status == 422
        ended = await browser.send(page, f"{at}/force-end", reason="paid", decision="COMMIT")
        assert "COMMIT by operator" in ended.text
        assert "a decision is final" in ended.text
        late = await browser.send(page, f"{at}/force-end", reason="no", decision="ROLLBACK")
        assert late.status == 409
        assert "The valid decision is COMMIT, by operator." in late.text
        events = (await service.client.get(f"/v1/half-messages/{message_id}/history")).json()
        named = [each["operator"] for each in events["events"] if each.get("operator")]
        assert named == ["Ada", "Ada"]


async def test_a_message_shows_the_others_of_its_decision(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ, Scope.OPS_FORCE) as (
        service,
        browser,
    ):
        messages = [{"topic": TOPIC, "value": value} for value in ("a", "b")]
        answer = await service.prepare(topic=..., value=..., messages=messages)
        leader, follower = answer.json()["message_ids"]
        page = await browser.get(f"/ui/messages/{follower}")
        assert f'href="/ui/messages/{leader}"' in page.html
        assert "is checked and decided for it" in page.text
