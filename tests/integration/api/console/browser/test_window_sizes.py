"""The console in Chromium, in windows of several sizes: nothing is cut off or outside of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from tests.integration.api.console.browser.fixtures_chromium import PROGRAM
from tests.integration.api.console.browser.fixtures_desk import PAGES, Desk
from tests.integration.api.console.fixtures_pictures import HEIGHT, PICTURES, WIDTH
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import HALVES
from tests.integration.api.fixtures_sockets import LONG_TOPIC

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.deep,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed"),
]
LONG: Final = "g" * 128
TELEPHONE: Final = 360
LARGE: Final = 1440
OLD: Final = "UPDATE outbox.half_message SET prepared_at = prepared_at - interval '105 days'"
"""The longer ago, the more words an age has."""


@asynccontextmanager
async def window(desk: Desk, width: int, height: int) -> AsyncIterator[None]:
    """Give the tab a window of this size for the block."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    await desk.tab.command("Emulation.setDeviceMetricsOverride", **metrics)
    try:
        yield
    finally:
        await desk.tab.command("Emulation.clearDeviceMetricsOverride")


async def name_at_length(desk: Desk) -> None:
    """Make a group, a topic and a key with the longest names, and a pause with a long reason."""
    await desk.listener.put_group(LONG)
    paused = {"reason": "p" * 500}
    await desk.listener.client.post(f"/v1/producer-groups/{LONG}/pause", json=paused)
    named = {"name": "n" * 100, "producer_groups": [LONG], "scopes": ["messages:read"]}
    await desk.listener.client.post("/v1/api-keys", json=named)
    _, held = [await desk.prepare(producer_group=LONG, topic=LONG_TOPIC) for _ in range(2)]
    await desk.listener.client.post(f"{HALVES}/{held}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, held)


async def test_no_table_is_wider_than_a_small_window(desk: Desk) -> None:
    shown = await desk.prepare(transaction_id="x" * 128, tags=["t" * 64])
    who = {"operator": "Ada", "reason": "the order service is back"}
    answer = await desk.listener.client.post(f"{HALVES}/{shown}/recheck", json=who)
    assert answer.status_code == 202, answer.text
    held = await desk.prepare(transaction_id="held")
    await desk.listener.client.post(f"{HALVES}/{held}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, held)
    await name_at_length(desk)
    await select(desk.pool, OLD)
    async with window(desk, WIDTH, HEIGHT):
        for path in (*PICTURES.values(), "/", "/groups", f"/groups/{LONG}", "/keys"):
            await desk.open(path.format(message=shown))
            unfold = (
                "document.querySelectorAll('td details').forEach(each => { each.open = true; })"
            )
            await desk.tab.js(unfold)
            shown_parts = "main table, main p, main select, main button"
            wide = await desk.tab.js(
                f"Array.from(document.querySelectorAll('{shown_parts}'))"
                ".filter(each => each.getBoundingClientRect().right > innerWidth)"
                ".map(each => each.innerText)"
            )
            assert wide == [], path
            ids = "Array.from(document.querySelectorAll('td a.id'), each => each.offsetHeight)"
            line = "parseFloat(getComputedStyle(document.body).lineHeight)"
            assert await desk.tab.js(f"Math.max(0, ...{ids}) < 3.5 * {line}"), path


async def test_the_head_of_every_page_is_one_line_on_a_large_window(desk: Desk) -> None:
    async with window(desk, LARGE, HEIGHT):
        for path in PAGES:
            await desk.open(f"/{path}")
            lines = "Array.from(document.querySelectorAll('header > *'), each => each.offsetTop)"
            assert await desk.tab.js(f"Math.max(...{lines}) < 30"), path


async def test_no_page_is_wider_than_a_telephone(desk: Desk, subtests: pytest.Subtests) -> None:
    shown = await desk.prepare(
        transaction_id="y" * 128,
        key="k" * 8000,
        value="v" * 5000,
        tags=["t" * 64],
        headers={"h" * 128: "w" * 4000},
    )
    outside = (
        "Array.from(document.querySelectorAll('main :not(table *)'))"
        ".filter(each => each.getBoundingClientRect().right > innerWidth)"
        ".map(each => each.outerHTML.slice(0, 80))"
    )
    async with window(desk, TELEPHONE, HEIGHT):
        for path in (
            *PAGES,
            "",
            f"messages/{shown}?payload=1",
            "reconciliations",
            "nothing",
            "?q=nothing",
        ):
            with subtests.test(path):
                await desk.open(f"/{path}")
                assert await desk.tab.js("document.documentElement.scrollWidth") == TELEPHONE
                assert await desk.tab.js(outside) == []
                narrow = (
                    "Array.from(document.querySelectorAll('.facts dd'), each => each.offsetWidth)"
                )
                assert min(await desk.tab.js(narrow), default=TELEPHONE) > 100
