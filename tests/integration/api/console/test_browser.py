"""The console in Chromium: what scripts add, what the policy stops, and two incidents.

One service, one database and one browser serve the whole module. The pictures of the documentation
are those that the last test takes: copy them from its folder to `docs/images`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from devservers.postgres import EmbeddedPostgres
from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_databases import drop_database, make_database
from tests.fixtures_paths import PROJECT
from tests.integration.api.console.fixtures_chromium import PROGRAM, Tab, chromium, size_of
from tests.integration.api.console.fixtures_console import key_text
from tests.integration.api.console.test_pages import CHECKED, begin_now
from tests.integration.api.console.test_start_page import HOSTILE
from tests.integration.api.fixtures_keys import WITH_KEYS, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import Listener, listening
from tests.integration.api.ingest.test_main_path import PARK

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.deep,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed"),
]
PAGES: Final = ("overview", "parked", "groups/billing", "publishing", "keys", "system")
PICTURES: Final = PROJECT / "docs" / "images"
WIDTH, HEIGHT = 1280, 800
SMALLEST_BYTES: Final = 20_000
"""A page of one colour takes a quarter of it."""


@dataclass(slots=True)
class Desk:
    """An operator in front of the console."""

    tab: Tab
    listener: Listener
    pool: Pool
    key: str
    origin: str
    interactions: int = 0

    async def open(self, path: str) -> None:
        """Load a page."""
        await self.tab.open(f"{self.origin}/ui{path}")

    async def prepare(self, **fields: object) -> str:
        """Prepare a message and return its id."""
        answer = await self.listener.client.post(HALVES, json=prepare_body(**fields))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["message_id"])

    async def does(self, selector: str, text: str | None = None) -> None:
        """Click on something that leads to another page, or fill in a field: one interaction."""
        self.interactions += 1
        if text is None:
            await self.tab.click(selector)
        else:
            await self.tab.fill(selector, text)


@pytest.fixture(scope="module")
def module_database(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield the URL of one database for all tests here."""
    url = make_database(postgres_server.database_url, template_database)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_desk(module_database: str) -> AsyncIterator[Desk]:
    """Yield an operator who is logged in."""
    async with make_pool(module_database, "test", pool_max=5) as pool:
        admin = await token(pool, Scope.ADMIN)
        settings = settings_for(module_database, **WITH_KEYS)
        async with listening(settings, headers=admin) as listener, chromium() as tab:
            await listener.put_group("billing")
            origin = f"http://127.0.0.1:{listener.port}"
            desk = Desk(tab, listener, pool, key_text(admin), origin)
            await log_in(desk)
            yield desk


@pytest.fixture
def desk(module_desk: Desk) -> Iterator[Desk]:
    """Yield the operator; afterwards no page may have complained, or asked another host."""
    module_desk.tab.complaints.clear()
    module_desk.tab.requested.clear()
    module_desk.interactions = 0
    yield module_desk
    assert module_desk.tab.complaints == []
    elsewhere = [
        each
        for each in module_desk.tab.requested
        if not each.startswith((module_desk.origin, "http://localhost:", "about:"))
    ]
    assert elsewhere == []


async def log_in(desk: Desk) -> None:
    """Log in as a person does."""
    await desk.open("/")
    await desk.tab.fill("#operator", "Ada")
    await desk.tab.fill("#key", desk.key)
    await desk.tab.click("form.stack button")


async def test_scripts_cannot_read_the_session_and_every_page_keeps_to_the_policy(
    desk: Desk,
) -> None:
    assert await desk.tab.address() == "/ui/"
    assert await desk.tab.js("document.cookie") == ""
    for path in PAGES:
        await desk.open(f"/{path}")
        assert "Log out" in await desk.tab.text()
        assert await desk.tab.js("document.documentElement.className") == "scripted"


async def test_the_policy_stops_a_script_that_was_written_into_a_page(desk: Desk) -> None:
    await desk.open("/")
    await desk.tab.js(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned=1\">');"
        "var s = document.createElement('script'); s.textContent = 'window.owned = 1';"
        "document.body.append(s)"
    )
    await desk.tab.until("performance.now() > 0")
    assert await desk.tab.js("window.owned") is None
    assert any("Content Security Policy" in each for each in desk.tab.complaints)
    desk.tab.complaints.clear()


async def test_hostile_payloads_are_words_on_the_page(desk: Desk) -> None:
    message_id = await desk.prepare(
        value=HOSTILE, key=HOSTILE, transaction_id=HOSTILE, headers={"h": HOSTILE}
    )
    for path in (f"/messages/{message_id}?payload=1", "/", "/?q=state:prepared"):
        await desk.open(path)
        assert "<script>document.title" in await desk.tab.text()
        assert "owned" not in str(await desk.tab.js("document.title"))


async def test_the_list_grows_by_itself_and_rests_under_the_pointer(desk: Desk) -> None:
    await desk.tab.point_at(1, 1)
    await desk.open("/?q=state:prepared")
    first = await desk.prepare()
    await desk.tab.until(f"document.body.innerText.includes('{first}')")
    place = await desk.tab.js(
        "(r => [r.x + 20, r.y + 20])(document.querySelector('table').getBoundingClientRect())"
    )
    await desk.tab.point_at(*(int(each) for each in place))
    second = await desk.prepare()
    await desk.tab.until("!document.getElementById('paused').hidden")
    assert second not in await desk.tab.text()
    await desk.tab.point_at(1, 1)
    await desk.tab.until(f"document.body.innerText.includes('{second}')")


async def test_keys_reach_the_search_and_the_help(desk: Desk) -> None:
    await desk.open("/overview")
    await desk.tab.press("/")
    await desk.tab.until("document.activeElement.id === 'q'")
    await desk.tab.js("document.activeElement.blur()")
    await desk.tab.press("?")
    await desk.tab.until("document.getElementById('help').open")
    await desk.tab.js("document.getElementById('help').close(); window.beforeLoading = true")
    await desk.tab.press("r")
    await desk.tab.until("!window.beforeLoading && document.readyState === 'complete'")


async def test_the_search_completes_its_last_word(desk: Desk) -> None:
    await desk.open("/")
    await desk.tab.js(
        "var q = document.getElementById('q'); q.value = 'age:>5m gr';"
        "q.dispatchEvent(new Event('input'))"
    )
    offered = await desk.tab.js(
        "Array.from(document.getElementById('qualifiers').options, each => each.value)"
    )
    assert "age:>5m group:" in offered
    assert "age:>5m group:billing" in offered


async def test_the_theme_and_the_clock_are_kept(desk: Desk) -> None:
    await desk.prepare()
    await desk.open("/")
    before = await desk.tab.js("document.querySelector('time').textContent")
    assert before.endswith("UTC")
    await desk.tab.click("#clock", loads=False)
    await desk.tab.click("#theme", loads=False)
    theme = await desk.tab.js("document.documentElement.dataset.theme")
    await desk.open("/")
    assert await desk.tab.js("document.documentElement.dataset.theme") == theme
    assert await desk.tab.js("document.getElementById('clock').textContent") == "Local time"
    await desk.tab.js("localStorage.clear()")


async def test_a_link_in_another_sites_page_opens_with_the_session(desk: Desk) -> None:
    await desk.tab.open(f"http://localhost:{desk.listener.port}/livez")
    await desk.tab.js(
        "document.body.innerHTML = '<a id=alert>alert</a>';"
        f"document.getElementById('alert').href = '{desk.origin}/ui/parked'"
    )
    await desk.tab.click("#alert", loads=False)
    await desk.tab.until("location.pathname === '/ui/parked' && document.title.includes('Parked')")


async def test_without_scripts_an_operator_finds_and_decides_a_message(desk: Desk) -> None:
    message_id = await desk.prepare(transaction_id="without scripts")
    await desk.tab.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        await desk.open("/")
        assert not await desk.tab.js("document.documentElement.className")
        await desk.tab.fill("#q", message_id)
        await desk.tab.click(".find button")
        await desk.tab.fill("#force-reason", "the order does not exist")
        await desk.tab.fill("#decision", "ROLLBACK")
        await desk.tab.click(".danger")
        assert "never visible to consumers" in await desk.tab.text()
    finally:
        await desk.tab.command("Emulation.setScriptExecutionDisabled", value=False)


async def test_incident_dead_producer_from_the_alert_to_nothing_parked(desk: Desk) -> None:
    for _ in range(3):
        await desk.prepare()
    await select(desk.pool, CHECKED, "timeout", None)
    await select(desk.pool, PARK)
    await desk.open("/parked")
    assert "timeout" in await desk.tab.text()
    await desk.does("td select", "rollback")
    await desk.does("td button")
    await desk.does("#bulk-reason", "the producer is gone for good")
    await desk.does(".danger")
    await begin_now(desk.pool)
    await desk.tab.until("document.body.innerText.includes('finished:')")
    await desk.does("nav a[href='/ui/parked']")
    assert "Nothing is parked." in await desk.tab.text()
    assert desk.interactions <= 6


async def test_incident_runaway_group_from_the_alert_to_paused_checks(desk: Desk) -> None:
    await desk.open("/groups/billing")
    await desk.does("#reason", "its endpoint is flooded")
    await desk.does("form[action$='/pause'] button")
    assert "paused: its endpoint is flooded" in await desk.tab.text()
    assert desk.interactions <= 6
    await desk.tab.fill("#reason", "done")
    await desk.tab.click("form[action$='/resume'] button")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_the_documentation_shows_the_start_page(
    desk: Desk, tmp_path: Path, dark: bool
) -> None:
    for number in range(7724, 7731):
        committed = await desk.prepare(transaction_id=f"invoice-{number}-{dark}", tags=["shown"])
        if number % 2:
            await desk.listener.client.post(
                f"{HALVES}/{committed}/end", json={"decision": "COMMIT"}
            )
    await desk.prepare(transaction_id=f"invoice-7731-{dark}", key="cust-58", tags=["shown"])
    await desk.tab.point_at(1, 1)
    await desk.open("/?q=group:billing+tag:shown")
    taken = await desk.tab.picture(width=WIDTH, height=HEIGHT, dark=dark)
    file = f"console-start-{'dark' if dark else 'light'}.png"
    await asyncio.to_thread((tmp_path / file).write_bytes, taken)
    kept = await asyncio.to_thread((PICTURES / file).read_bytes)
    assert size_of(taken) == size_of(kept) == (WIDTH, HEIGHT)
    assert min(len(taken), len(kept)) > SMALLEST_BYTES
