"""An operator in front of the console, in a real browser, on a real service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.integration.api.console.browser.fixtures_chromium import Tab, chromium
from tests.integration.api.console.fixtures_console import OPERATOR, key_text
from tests.integration.api.fixtures_keys import WITH_KEYS, token
from tests.integration.api.fixtures_service import HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import Listener, listening

PAGES: Final = ("messages", "parked", "groups/billing", "publishing", "audit", "keys", "system")
"""Pages that are there on every installation."""


@dataclass(slots=True)
class Desk:
    """An operator in front of the console."""

    tab: Tab
    listener: Listener
    pool: Pool
    key: str
    origin: str

    async def open(self, path: str) -> None:
        """Load a page."""
        await self.tab.open(f"{self.origin}/ui{path}")

    async def prepare(self, **fields: object) -> str:
        """Prepare a message and return its id."""
        answer = await self.listener.client.post(HALVES, json=prepare_body(**fields))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["message_id"])


@asynccontextmanager
async def sitting(database_url: str, **settings: Any) -> AsyncIterator[Desk]:
    """Yield an operator who is logged in."""
    async with make_pool(database_url, "test", pool_max=5) as pool:
        admin = await token(pool, Scope.ADMIN)
        given = settings_for(database_url, **WITH_KEYS, **settings)
        async with listening(given, headers=admin) as listener, chromium() as tab:
            await listener.put_group("billing")
            origin = f"http://127.0.0.1:{listener.port}"
            desk = Desk(tab, listener, pool, key_text(admin), origin)
            await log_in(desk)
            yield desk


async def log_in(desk: Desk) -> None:
    """Log in as a person does."""
    await desk.open("/")
    await desk.tab.fill("#operator", OPERATOR)
    await desk.tab.fill("#key", desk.key)
    await desk.tab.click("main form button")
