"""What strangers, other sites and tenants try against the console."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final
from urllib.parse import quote

import pytest

from api.console.session import COOKIE
from outbox.access import Scope
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import browsing, key_text, logged_in
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_service import HALVES
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = pytest.mark.postgres

HOSTILE: Final = "\"'><script>owned()</script><img src=x onerror=alert(1)><a href='javascript:1'>"


async def test_two_cookies_of_the_session_are_none(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        [mine] = browser.client.cookies.values()
        for cookie, status in (
            (f"{COOKIE}={mine}", 200),
            (f"a=b; {COOKIE}={mine}; c; {COOKIE}={mine}", 303),
        ):
            browser.client.cookies.clear()
            answer = await browser.client.get("/ui/", headers={"cookie": cookie})
            assert answer.status_code == status


async def test_a_session_from_before_the_login_is_no_session_after_it(
    database_url: str, pool: Pool
) -> None:
    key = key_text(await token(pool, Scope.ADMIN))
    async with guarded(database_url) as service, browsing(service) as browser:
        login = await browser.get("/ui/login")
        [planted] = browser.client.cookies.values()
        page = await browser.send(login, "/ui/login", key=key, operator="A")
        [session] = browser.client.cookies.values()
        assert page.status == 200
        assert page.forms()["/ui/logout"]["csrf"] != login.forms()["/ui/login"]["csrf"]
        assert key not in session
        browser.client.cookies.clear()
        answer = await browser.client.get("/ui/", headers={"cookie": f"{COOKIE}={planted}"})
        assert answer.headers["location"].startswith("/ui/login")


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://localhost.evil.example"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
        {},
    ],
    ids=str,
)
async def test_no_other_site_logs_a_browser_in(
    database_url: str, pool: Pool, headers: dict[str, str]
) -> None:
    key = key_text(await token(pool, Scope.ADMIN))
    async with guarded(database_url) as service, browsing(service) as browser:
        login = await browser.get("/ui/login")
        form = login.forms()["/ui/login"] | {"key": key, "operator": "A"}
        if not headers:
            form["csrf"] = "guess"
        answer = await browser.client.post("/ui/login", data=form, headers=headers)
        assert answer.status_code == 403
        assert "/ui/login" in (await browser.get("/ui/")).path


async def test_a_page_costs_as_much_as_the_requests_that_it_stands_for(
    database_url: str, pool: Pool
) -> None:
    token_seconds = 64
    limited = guarded(database_url, rate_read_per_second=1, http_workers=token_seconds)
    async with limited as service, browsing(service) as browser:
        header = await token(pool, Scope.ADMIN)
        page = await browser.log_in(key_text(header))
        assert page.status == 200
        answer = await service.client.get(HALVES, headers=header)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > token_seconds
        assert (await browser.get("/ui/")).status == 429


TEXTS: Final = ("\0", "\ud800", "\u202e", "..", "%", "'--", "{{7*7}}", "a" * 2000, HOSTILE)


async def test_no_address_breaks_a_page(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        for text in TEXTS:
            part = quote(text, safe="", errors="surrogatepass")
            for path in (
                f"/ui/find?id={part}",
                f"/ui/messages?state=PREPARED&cursor={part}",
                f"/ui/messages?producer_group={part}",
                f"/ui/messages?done={part}",
                f"/ui/export?tag={part}",
                f"/ui/messages/{part}",
                f"/ui/groups/{part}",
                f"/ui/groups?cursor={part}",
                f"/ui/keys?cursor={part}",
                f"/ui/reconciliations/{part}",
                f"/ui/reconciliations/{part}/report.{part}",
                f"/ui/reconciliations?cursor={part}",
                f"/ui/publishing?cursor={part}",
                f"/ui/audit?cursor={part}",
                f"/ui/bulk-actions/{part}",
                f"/ui/static/{part}",
                f"/ui/{part}",
            ):
                with subtests.test(path[:40]):
                    answer = await browser.client.get(path)
                    assert answer.status_code < 500
                    assert "<script>owned" not in answer.text
                    assert "<img" not in answer.text


class Elements(HTMLParser):
    """What a browser makes of a page: its elements, and where they lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


STORE_EVERYWHERE: Final = (
    "UPDATE outbox.producer_group SET paused = true, pause_reason = %s",
    "UPDATE outbox.api_key SET name = %s",
    "UPDATE outbox.bulk_action SET operator = left(%s, 128)",
)


async def test_hostile_text_of_every_origin_is_text_on_every_page(
    database_url: str, pool: Pool
) -> None:
    run = make_run("one", "f1", sentence=HOSTILE, totals={HOSTILE: 1})
    PostgresRunStore(database_url).save(run)
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        fields = {
            "value": HOSTILE,
            "key": HOSTILE,
            "transaction_id": HOSTILE,
            "tags": [HOSTILE[:64]],
            "headers": {"h": HOSTILE},
        }
        await service.prepared_id(**fields)
        ended = await service.prepared_id(**fields | {"transaction_id": HOSTILE + "2"})
        await service.end(ended, "COMMIT", reason=HOSTILE)
        found = {"transaction_id": HOSTILE}
        order = {"action": "recheck", "filter": found, "operator": "o", "reason": HOSTILE}
        action = (await service.client.post("/v1/bulk-actions", json=order)).json()["id"]
        await hold(pool, ended, HOSTILE)
        for statement in STORE_EVERYWHERE:
            async with pool.connection() as connection:
                await connection.execute(statement.encode(), [HOSTILE])
        asked, seen = {"/ui/", f"/ui/bulk-actions/{action}"}, set[str]()
        shown = 0
        while asked - seen and len(seen) < 150:
            path = min(asked - seen)
            seen.add(path)
            page = await browser.client.get(path)
            if not page.headers.get("content-type", "").startswith("text/html"):
                continue
            assert page.status_code < 500, path
            shown += page.text.count("&lt;script&gt;owned")
            elements = Elements()
            elements.feed(page.text)
            asked |= links(elements, path)
        names = {path.partition("?")[0].split("/")[2] for path in seen if path.count("/") > 1}
        assert {"messages", "groups", "keys", "publishing", "reconciliations"} <= names
        assert shown > 20


def links(elements: Elements, path: str) -> set[str]:
    """Return the pages that a page leads to; fails for what hostile text could have made."""
    for tag, attributes in elements.found:
        assert tag not in ("img", "iframe", "object", "embed", "style"), path
        assert tag != "script" or (attributes.get("src") or "").startswith("/ui/static/"), path
        assert not [name for name in attributes if name.startswith("on")], path
        for name in ("href", "src", "action", "hx-get"):
            led = attributes.get(name) or "/ui"
            assert led.startswith(("/ui", "#main", "?")), (path, attributes)
    return {
        str(attributes["href"])
        for tag, attributes in elements.found
        if tag == "a" and str(attributes.get("href")).startswith("/ui")
    }
