"""The start page, the page of a message, and the search box."""

from __future__ import annotations

import csv
import json
import re
from html import unescape

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Page, logged_in
from tests.integration.api.console.fixtures_hostile_text import HOSTILE
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import HALVES, TOPIC, prepare_body

pytestmark = pytest.mark.postgres


async def test_the_start_page_lists_what_is_not_finished(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        prepared, committed, rolled = [await service.prepared_id() for _ in range(3)]
        await service.end(committed, "COMMIT")
        await service.end(rolled, "ROLLBACK")
        page = await browser.get("/ui/")
        assert page.status == 200
        assert prepared in page.html
        assert committed in page.html
        assert rolled not in page.html
        assert "GET /v1/half-messages?state=PREPARED&limit=50" in page.text
        assert "outbox message list" in page.text


async def test_qualifiers_filter_and_are_in_the_address(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        await service.put_group("other")
        mine = await service.prepared_id(transaction_id="t-1", tags=["red"])
        theirs = await service.prepared_id(producer_group="other")
        for search, shown in {
            "group:billing": (mine,),
            "group:other state:prepared": (theirs,),
            f"topic:{TOPIC}": (mine, theirs),
            "tag:red": (mine,),
            "transaction:t-1": (mine,),
            'tag:"red"': (mine,),
            "age:<1h": (mine, theirs),
            "age:>1h": (),
            "checks:>0": (),
            "state:parked": (),
        }.items():
            page = await browser.client.get("/ui/", params={"q": search})
            found = {each for each in (mine, theirs) if each in page.text}
            assert (page.status_code, found) == (200, set(shown)), search
        assert "outbox message list --state PREPARED --group other" in re.sub(
            r"\s+", " ", (await browser.client.get("/ui/?q=state:prepared+group:other")).text
        )


async def test_a_search_that_is_not_understood_says_what_is_expected(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (_, browser):
        for search, expected in {
            "age:5m": "age: takes",
            "checks:many": "checks: takes",
            "state:lost": "state: takes",
            "group:": "group: needs a value",
            "group:billing word": "is no qualifier",
            "cust 58": "an id with blanks needs double quotes",
            'group:"billing': "is not closed",
            "outcome:lost": "last_outcome",
            "key:x": "messages:payload",
            "tag:" + "x" * 900: "tag",
            "transaction:a\x00": "transaction_id",
        }.items():
            with subtests.test(search[:20]):
                page = await browser.client.get("/ui/", params={"q": search})
                assert page.status_code == 422
                assert expected in page.text
        bad = await browser.client.get("/ui/?q=state:parked&cursor=nonsense")
        assert bad.status_code == 422


async def test_what_the_search_box_cuts_off_is_refused_and_not_searched_for(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (_, browser):
        [most] = re.findall(
            r'<input id="q"[^>]* maxlength="(\d+)"', (await browser.get("/ui/")).html
        )
        page = await browser.get(f"/ui/?q={'k' * int(most)}")
        assert page.status == 422
        assert "a search has at most 1000 characters" in page.text


async def test_one_box_finds_a_message_by_its_id_its_transaction_and_its_key(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.MESSAGES_PAYLOAD)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        message_id = await service.prepared_id(transaction_id="invoice/7731", key="cust-58")
        for word in (message_id, "invoice/7731", "cust-58"):
            page = await browser.client.get("/ui/", params={"q": word}, follow_redirects=True)
            assert page.url.path == f"/ui/messages/{message_id}", word
        page = await browser.client.get("/ui/", params={"q": "nothing"})
        assert page.status_code == 404
        assert "No message has this" in page.text


async def test_a_word_that_is_no_id_stays_in_the_box_and_leads_to_its_group_topic_and_tag(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        message_id = await service.prepared_id()
        nothing = await browser.get("/ui/?q=billing")
        assert (nothing.status, 'name="q" value="billing"' in nothing.html) == (404, True)
        links = re.findall(r'href="([^"]+)">(group|topic|tag):billing', nothing.html)
        assert [name for _, name in links] == ["group", "topic", "tag"]
        assert message_id in (await browser.get(unescape(links[0][0]))).html


async def test_the_address_of_a_form_leads_to_its_page(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    """A browser that is started again asks for the addresses of its tabs, never for forms."""
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        message_id = await service.prepared_id()
        for address, page in (
            ("groups/billing/test", "/ui/groups/billing"),
            ("groups/billing/pause", "/ui/groups/billing"),
            (f"messages/{message_id}/force-end", f"/ui/messages/{message_id}"),
            ("bulk-actions?q=tag:a%26b", "/ui/?q=tag:a%26b"),
            (f"held/{message_id}", "/ui/"),
            ("keys/x/revoke", "/ui/keys"),
            ("logout", "/ui/"),
        ):
            with subtests.test(address):
                found = await browser.get(f"/ui/{address}")
                assert (found.status, found.path) == (200, page)


async def test_a_page_of_a_list_leads_to_the_next(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        ids = {await service.prepared_id() for _ in range(60)}
        page = await browser.get("/ui/?q=state:prepared")
        assert "the next page goes on" in page.text
        [following] = re.findall(r'href="([^"]+)">Next page', page.html)
        second = await browser.get(following.replace("&amp;", "&"))
        first_ids = {each for each in ids if each in page.html}
        second_ids = {each for each in ids if each in second.html}
        assert (len(first_ids), first_ids | second_ids) == (50, ids)
        assert not first_ids & second_ids
        assert "Looked at every message in this state." in second.text


async def test_a_refresh_gets_the_list_alone_and_does_not_renew_the_session(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        message_id = await service.prepared_id()
        part = await browser.get("/ui/", **{"hx-request": "true", "hx-target": "live"})
        assert message_id in part.html
        assert "<html" not in part.html
        assert "set-cookie" not in part.answer.headers
        browser.client.cookies.clear()
        part = await browser.get("/ui/", **{"hx-request": "true", "hx-target": "live"})
        assert (part.status, part.answer.headers["hx-refresh"]) == (204, "true")


async def test_an_export_holds_exactly_what_matches_and_no_formula(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        await service.put_group("other")
        ids = {await service.prepared_id(transaction_id=f"=cmd|{n}") for n in range(3)}
        await service.prepared_id(producer_group="other")
        answer = await browser.client.get("/ui/export?q=group:billing")
        rows = list(csv.DictReader(answer.text.splitlines()))
        assert {row["message_id"] for row in rows} == ids
        assert all(row["transaction_id"].startswith("'=") for row in rows)
        assert "attachment" in answer.headers["content-disposition"]


async def test_a_key_bound_to_a_group_sees_that_group_alone(database_url: str, pool: Pool) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE)
    bound = logged_in(database_url, pool, *scopes, groups=("billing",))
    async with bound as (service, browser):
        await service.put_group("other")
        mine = await service.prepared_id()
        theirs = await service.prepared_id(producer_group="other", transaction_id="t-2")
        for path in ("/ui/", "/ui/?q=group:other", "/ui/export"):
            page = await browser.get(path)
            assert theirs not in page.html
            assert (mine in page.html) is (path != "/ui/?q=group:other")
        foreign = await browser.get(f"/ui/messages/{theirs}")
        missing = await browser.get("/ui/messages/" + "0" * 36)
        assert foreign.status == missing.status == 404
        assert (await browser.get("/ui/?q=t-2")).status == 404
        form = (await browser.get(f"/ui/messages/{mine}")).forms()
        fields = form[f"/ui/messages/{mine}/force-end"] | {"reason": "r", "decision": "COMMIT"}
        for action in ("recheck", "force-end"):
            answer = await browser.client.post(f"/ui/messages/{theirs}/{action}", data=fields)
            assert answer.status_code in (404, 422)
        half = (await service.client.get(f"/v1/half-messages/{theirs}")).json()
        assert half["state"] == "PREPARED"


async def test_a_message_shows_its_facts_its_timeline_and_what_consumers_see(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        message_id = await service.prepared_id(transaction_id="t-1")
        page = await browser.get(f"/ui/messages/{message_id}")
        assert "not yet visible to consumers" in page.text
        assert re.search(r"prepared .* UTC", page.text)
        assert f"GET /v1/half-messages/{message_id}/history" in page.text
        assert f"outbox message get {message_id} --history" in page.text
        await service.end(message_id, "ROLLBACK")
        page = await browser.get(f"/ui/messages/{message_id}")
        assert "never visible to consumers" in page.text
        assert "gap gap-" in page.html


async def test_a_message_shows_its_json_and_its_trace_and_leads_to_a_viewer_of_traces(
    database_url: str, pool: Pool
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    viewer = "https://traces.example/t/{trace_id}?from=outbox&x=1"
    scopes = (Scope.MESSAGES_READ, Scope.MESSAGES_PAYLOAD)
    async with logged_in(database_url, pool, *scopes, ui_trace_url=viewer) as (service, browser):
        headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        stored = await service.client.post(
            HALVES, json=prepare_body(value="<i>v</i>"), headers=headers
        )
        message_id = stored.json()["message_id"]
        page = await browser.get(f"/ui/messages/{message_id}")
        answer = await service.client.get(f"{HALVES}/{message_id}")
        assert json.loads(shown_json(page)) == answer.json()
        assert (
            f'"https://traces.example/t/{trace}?from=outbox&amp;x=1" rel="noreferrer"' in page.html
        )
        assert (await browser.get(f"/ui/?q={trace}")).path == f"/ui/messages/{message_id}"
        whole = await browser.get(f"/ui/messages/{message_id}?payload=1")
        assert json.loads(shown_json(whole))["value"] == "<i>v</i>"
        assert "include=payload" in whole.html
        bare = await browser.get(f"/ui/messages/{await service.prepared_id()}")
        assert "<dt>Trace</dt>" not in bare.html


def shown_json(page: Page) -> str:
    """Return the JSON of a message's page."""
    [shown] = re.findall(r'<pre id="json"[^>]*>(.*?)</pre>', page.html, re.DOTALL)
    return unescape(shown)


async def test_a_refused_record_is_settled_on_the_page_of_its_message(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        message_id = await service.prepared_id()
        await service.end(message_id, "COMMIT")
        at, form = f"/ui/messages/{message_id}", f"/ui/held/{message_id}"
        assert form not in (await browser.get(at)).forms()
        await hold(pool, message_id)
        given_up = await browser.send(
            await browser.get(at), form, action="drop", reason="sent by hand"
        )
        assert "The record is given up" in given_up.text


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


async def test_a_message_with_damaged_headers_is_shown_with_the_rest_of_its_payload(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.MESSAGES_PAYLOAD)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        message_id = await service.prepared_id(value="the value", headers={"tenant": "a"})
        await select(pool, "UPDATE outbox.half_message SET headers = '{x}'")
        page = await browser.get(f"/ui/messages/{message_id}?payload=1")
        assert (page.status, "the value" in page.text) == (200, True)
        assert "Headers damaged in PostgreSQL" in page.text


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
        assert "The standing decision is COMMIT, by operator." in late.text
        events = (await service.client.get(f"/v1/half-messages/{message_id}/history")).json()
        named = [each["operator"] for each in events["events"] if each.get("operator")]
        assert named == ["Ada", "Ada"]


async def test_hostile_text_is_shown_as_text(database_url: str, pool: Pool) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.MESSAGES_PAYLOAD)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        message_id = await service.prepared_id(
            value=HOSTILE,
            key=HOSTILE,
            transaction_id=HOSTILE,
            tags=[HOSTILE[:64]],
            headers={"h": HOSTILE},
            content_type="text/html",
        )
        paths = (f"/ui/messages/{message_id}?payload=1", "/ui/", "/ui/?q=state:prepared")
        for path in paths:
            page = await browser.get(path)
            assert page.status == 200
            assert "<script>document" not in page.html
            assert "<img" not in page.html
            assert HOSTILE in page.text.replace("\u00a0", " ")
        for search in (HOSTILE, f"tag:{HOSTILE}", f'group:"{HOSTILE}"'):
            answer = await browser.client.get("/ui/", params={"q": search}, follow_redirects=True)
            assert "<script>document" not in answer.text
