"""The console in Chromium: what scripts add, and what the policy stops.

One service, one database and one browser serve the whole module.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.integration.api.console.browser.fixtures_chromium import PROGRAM
from tests.integration.api.console.browser.fixtures_desk import PAGES, Desk
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_service import HALVES

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.deep,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed"),
]


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


async def test_the_list_grows_by_itself_and_rests_under_the_pointer(desk: Desk) -> None:
    await desk.tab.point_at(1, 1)
    await desk.open("/messages?state=PREPARED")
    first = await desk.prepare()
    await desk.tab.until(f"document.body.innerText.includes('{first[-12:]}')")
    place = await desk.tab.js(
        "(r => [r.x + 20, r.y + 20])(document.querySelector('table').getBoundingClientRect())"
    )
    await desk.tab.point_at(*(int(each) for each in place))
    second = await desk.prepare()
    await desk.tab.until("!document.getElementById('paused').hidden")
    assert second[-12:] not in await desk.tab.text()
    await desk.tab.point_at(1, 1)
    await desk.tab.until(f"document.body.innerText.includes('{second[-12:]}')")


async def test_a_reason_that_is_being_written_is_not_refreshed_away(desk: Desk) -> None:
    held = await desk.prepare()
    await desk.listener.client.post(f"{HALVES}/{held}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, held)
    await desk.tab.point_at(1, 1)
    await desk.open("/publishing")
    field = f"form[action$='/held/{held}'] [name=reason]"
    await desk.tab.fill(field, "it is repaired")
    await desk.tab.until("document.getElementById('paused').innerText.includes('filled in')")
    assert await desk.tab.js(f'document.querySelector("{field}").value') == "it is repaired"


FIRST_BUTTON: Final = "main td button:not(.copy), main td summary"


async def test_a_page_fits_a_desk_and_a_telephone_and_an_id_is_copied(desk: Desk) -> None:
    held = await desk.prepare(transaction_id="t" * 120)
    await desk.listener.client.post(f"{HALVES}/{held}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, held)
    await desk.tab.resize(1280)
    await desk.open("/messages?state=COMMITTED")
    assert await desk.tab.js("document.querySelector('header').offsetHeight") < 60
    await desk.tab.command("Emulation.setFocusEmulationEnabled", enabled=True)
    await desk.tab.click(f"[data-copy='{held}']", loads=False)
    await desk.tab.until("[...document.querySelectorAll('.copy')].some(e => e.innerText=='copied')")
    await desk.tab.resize(390)
    for path in ("", *PAGES, "messages?state=COMMITTED"):
        await desk.open(f"/{path}")
        assert await desk.tab.js("document.documentElement.scrollWidth") <= 390, path
    for path in ("publishing", "keys"):
        await desk.open(f"/{path}")
        box = await desk.tab.js(
            "(r => [r.left, r.right])(document.querySelector("
            f"'{FIRST_BUTTON}').getBoundingClientRect())"
        )
        assert 0 <= box[0] < box[1] <= 390, path
    await desk.tab.command("Emulation.clearDeviceMetricsOverride")
