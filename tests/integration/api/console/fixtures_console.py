"""A browser without JavaScript: it keeps cookies, follows redirects and sends forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx2

from outbox.access import ALL_GROUPS, Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_service import Service

OPERATOR = "Ada"


@dataclass(slots=True)
class Page:
    """A page as it arrived."""

    answer: httpx2.Response

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.answer.status_code

    @property
    def html(self) -> str:
        """The source."""
        return self.answer.text

    @property
    def path(self) -> str:
        """The path and query of the address."""
        return self.answer.url.raw_path.decode()

    @property
    def text(self) -> str:
        """The words that people read."""
        bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", self.html, flags=re.DOTALL)
        return re.sub(r"\s+", " ", unescape(bare))

    def forms(self) -> dict[str, dict[str, str]]:
        """Return the fields of each form by its path, and its id if it has one: ``path#id``."""
        return self._read().forms

    def method(self, name: str) -> str:
        """Return how a browser sends a form."""
        return self._read().methods[name]

    def _read(self) -> _FormReader:
        reader = _FormReader()
        reader.feed(self.html)
        return reader


class _FormReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: dict[str, dict[str, str]] = {}
        self.methods: dict[str, str] = {}
        self._fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            path, _, _ = given.get("action", "").partition("?")
            name = "#".join([path, *([given["id"]] if "id" in given else [])])
            self._fields = self.forms.setdefault(name, {})
            self.methods[name] = given.get("method", "get")
        elif given.get("type") == "checkbox":
            return  # it is sent only if somebody has ticked it
        elif tag in ("input", "button", "select") and "name" in given:
            self._fields[given["name"]] = given.get("value", "")


class Browser:
    """A client of the console."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def get(self, path: str, **headers: str) -> Page:
        """Load a page."""
        return Page(await self.client.get(path, headers=headers, follow_redirects=True))

    async def send(self, page: Page, name: str, **fields: str | list[str]) -> Page:
        """Send a form of a page, with these fields filled in."""
        form = page.forms()[name] | fields
        address = name.partition("#")[0]
        if page.method(name) == "get":
            return Page(await self.client.get(address, params=form, follow_redirects=True))
        return Page(await self.client.post(address, data=form, follow_redirects=True))

    async def log_in(self, key: str, path: str = "/ui/", operator: str = OPERATOR) -> Page:
        """Log in from a page, and return it."""
        login = await self.get(path)
        assert "/ui/login" in login.path, login.text
        return await self.send(login, "/ui/login", key=key, operator=operator)


@asynccontextmanager
async def browsing(service: Service) -> AsyncIterator[Browser]:
    """Yield a browser without a session."""
    transport = httpx2.ASGITransport(app=service.app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", timeout=30
    ) as client:
        yield Browser(client)


@asynccontextmanager
async def logged_in(
    database_url: str,
    pool: Pool,
    *scopes: Scope,
    groups: tuple[str, ...] = (ALL_GROUPS,),
    **settings: Any,
) -> AsyncIterator[tuple[Service, Browser]]:
    """Yield a service with an administrator as its client, and a browser with such a key."""
    async with guarded(database_url, **settings) as service, browsing(service) as browser:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        assert (await service.put_group()).status_code == 201
        await browser.log_in(key_text(await token(pool, *scopes, groups=groups)))
        yield service, browser


def key_text(header: dict[str, str]) -> str:
    """Return the key of a header."""
    return header["Authorization"].removeprefix("Bearer ")


async def until_finished(browser: Browser, page: Page) -> Page:
    """Load the page of an action until it is finished."""
    async with asyncio.timeout(60):
        while "finished:" not in page.text:
            page = await browser.get(page.path)
    return page
