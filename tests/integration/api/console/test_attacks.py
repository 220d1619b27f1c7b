"""What strangers, other sites and tenants try against the console, over real sockets."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final
from urllib.parse import quote, urlencode

import pytest

from outbox.access import Scope
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import browsing, key_text, logged_in
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_keys import WITH_KEYS, guarded, token
from tests.integration.api.fixtures_service import HALVES, settings_for
from tests.integration.api.fixtures_sockets import Answer, Listener, listening, request
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = pytest.mark.postgres

FORM: Final = "content-type: application/x-www-form-urlencoded"
HOSTILE: Final = "\"'><script>owned()</script><img src=x onerror=alert(1)><a href='javascript:1'>"
CSRF: Final = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass(slots=True)
class Sender:
    """Sends requests to the console, with headers and a cookie of the test's choice."""

    listener: Listener
    cookie: str = ""

    async def get(self, path: str, *headers: str) -> Answer:
        """Send a GET."""
        return await self.send("GET", path, headers, b"")

    async def post(self, path: str, form: Mapping[str, str], *headers: str) -> Answer:
        """Send a form."""
        body = urlencode(form).encode()
        return await self.send("POST", path, (FORM, *headers), body)

    async def log_in(self, key: str) -> None:
        """Log in, and keep the cookie."""
        login = await self.get("/ui/login")
        self.cookie = cookie_of(login)
        answer = await self.post("/ui/login", {"key": key, "operator": "A", "csrf": csrf(login)})
        assert answer.status == 303
        self.cookie = cookie_of(answer)

    async def send(self, method: str, path: str, headers: tuple[str, ...], body: bytes) -> Answer:
        """Send a request over a connection of its own."""
        own = (f"cookie: outbox_console={self.cookie}",) if self.cookie else ()
        length = (f"content-length: {len(body)}",) if body else ()
        lines = (*own, *headers, *length, "connection: close")
        wire = await self.listener.wire(request(method, path, *lines, length=False) + body)
        answer = await wire.answer()
        wire.writer.close()
        assert answer is not None
        return answer


def cookie_of(answer: Answer) -> str:
    """Return the value of the cookie that an answer sets."""
    found = re.search(r"set-cookie: outbox_console=([^;]*)", answer.head, re.IGNORECASE)
    assert found is not None
    return found[1]


def csrf(answer: Answer) -> str:
    """Return the token of the forms of a page."""
    found = CSRF.search(answer.body.decode())
    assert found is not None
    return found[1]


@asynccontextmanager
async def sending(database_url: str) -> AsyncIterator[Sender]:
    """Serve with keys; yield a browser's requests without a session."""
    async with listening(settings_for(database_url, **WITH_KEYS)) as listener:
        yield Sender(listener)


async def test_two_cookies_of_the_session_are_none(database_url: str, pool: Pool) -> None:
    key = key_text(await token(pool, Scope.ADMIN))
    async with sending(database_url) as sender:
        await sender.log_in(key)
        mine, sender.cookie = sender.cookie, ""
        assert (await sender.get("/ui/", f"cookie: outbox_console={mine}")).status == 200
        both = f"cookie: a=b; outbox_console={mine}; c; outbox_console={mine}"
        assert (await sender.get("/ui/", both)).headers["location"].startswith("/ui/login")


async def test_a_session_from_before_the_login_is_no_session_after_it(
    database_url: str, pool: Pool
) -> None:
    key = key_text(await token(pool, Scope.ADMIN))
    async with sending(database_url) as sender:
        login = await sender.get("/ui/login")
        planted, known = cookie_of(login), csrf(login)
        sender.cookie = planted
        answer = await sender.post("/ui/login", {"key": key, "operator": "A", "csrf": known})
        assert answer.status == 303
        assert (await sender.get("/ui/")).headers["location"].startswith("/ui/login")
        sender.cookie = cookie_of(answer)
        page = await sender.get("/ui/")
        assert page.status == 200
        assert csrf(page) != known
        assert key not in sender.cookie


@pytest.mark.parametrize(
    "headers",
    [
        ("sec-fetch-site: cross-site",),
        ("sec-fetch-site: same-site",),
        ("origin: http://evil.example",),
        ("origin: null",),
        ("origin: http://[",),
        ("origin: http://localhost.evil.example",),
        ("origin: http://evil.example", "sec-fetch-site: same-origin"),
        (),
    ],
)
async def test_no_other_site_logs_a_browser_in(
    database_url: str, pool: Pool, headers: tuple[str, ...]
) -> None:
    key = key_text(await token(pool, Scope.ADMIN))
    async with sending(database_url) as sender:
        login = await sender.get("/ui/login")
        form = {"key": key, "operator": "A", "csrf": csrf(login) if headers else "guess"}
        sender.cookie = cookie_of(login)
        answer = await sender.post("/ui/login", form, *headers)
        assert answer.status == 403
        sender.cookie = cookie_of(answer)
        assert (await sender.get("/ui/")).headers["location"].startswith("/ui/login")


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
    header = await token(pool, Scope.ADMIN)
    async with sending(database_url) as sender:
        await sender.log_in(key_text(header))
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
                    answer = await sender.get(path)
                    assert answer.status < 500
                    assert b"<script>owned" not in answer.body
                    assert b"<img" not in answer.body


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
