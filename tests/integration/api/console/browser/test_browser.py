"""The console in Chromium: what scripts add, and what the policy stops.

One service, one database and one browser serve the whole module.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.api.console.browser.fixtures_chromium import LIVENESS_SECONDS, PROGRAM
from tests.integration.api.console.browser.fixtures_desk import PAGES, Desk
from tests.integration.api.console.fixtures_hostile_text import HOSTILE
from tests.integration.api.console.fixtures_overtaken_time import begin_now
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import HALVES
from tests.integration.checker.fixtures_producer import Producer, says

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


async def test_parked_and_refused_records_appear_by_themselves(desk: Desk) -> None:
    await desk.tab.point_at(1, 1)
    await desk.open("/publishing")
    held = await desk.prepare()
    await desk.listener.client.post(f"{HALVES}/{held}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, held)
    await desk.tab.until(f"document.querySelector('form[action$=\"/held/{held}\"]') !== null")
    await desk.open("/parked")
    parked = await desk.prepare()
    await select(desk.pool, PARK)
    await desk.tab.until(f"document.getElementById('live').innerText.includes('{parked}')")
    assert "All of them" in await desk.tab.text()


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


async def test_a_person_switches_the_refresh_off_and_on_again(desk: Desk) -> None:
    await desk.tab.point_at(1, 1)
    await desk.open("/audit")
    assert await desk.tab.js("document.getElementById('refresh').offsetParent === null")
    await desk.open("/?q=state:prepared")
    await desk.tab.click("#refresh", loads=False)
    await desk.open("/?q=state:prepared")
    assert "Refresh off" in await desk.tab.text()
    await desk.tab.js(
        "window.addEventListener('htmx:beforeRequest',"
        " event => { window.stopped = event.defaultPrevented; })"
    )
    first = await desk.prepare()
    await desk.tab.until("window.stopped")
    assert first not in await desk.tab.text()
    await desk.tab.click("#refresh", loads=False)
    await desk.tab.until(f"document.body.innerText.includes('{first}')")


async def test_a_page_that_cannot_refresh_itself_says_since_when(desk: Desk) -> None:
    await desk.tab.point_at(1, 1)
    await desk.open("/?q=state:committed")
    hidden = "document.getElementById('stale').hidden"
    said = "document.getElementById('stale').textContent"
    assert await desk.tab.js(hidden)
    lacking = "ALTER TABLE outbox.held_record RENAME TO of_a_later_release"
    await select(desk.pool, lacking)
    try:
        await desk.tab.until(f"!{hidden} && {said}.includes('the API answers 503')")
    finally:
        await select(desk.pool, "ALTER TABLE outbox.of_a_later_release RENAME TO held_record")
    await desk.tab.until(hidden)
    away = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    await desk.tab.command("Network.emulateNetworkConditions", offline=True, **away)
    await desk.tab.until(f"!{hidden} && {said}.includes('the API does not answer')")
    await desk.tab.command("Network.emulateNetworkConditions", offline=False, **away)
    await desk.tab.until(hidden)


async def test_a_page_that_was_refused_stays_as_it_is_until_the_service_is_back(desk: Desk) -> None:
    """A screen reader would begin anew with each reload."""
    await select(desk.pool, "ALTER TABLE outbox.held_record RENAME TO of_a_later_release")
    try:
        await desk.open("/?q=state:committed")
        assert "tries again every five seconds" in await desk.tab.text()
        await desk.tab.js(
            "window.asked = 0; window.read = window.fetch;"
            " window.fetch = (...given) => { window.asked += 1; return window.read(...given); }"
        )
        await desk.tab.until("window.asked > 0")
    finally:
        await select(desk.pool, "ALTER TABLE outbox.of_a_later_release RENAME TO held_record")
    await desk.tab.until("document.querySelector('h1').innerText === 'Committed'")


async def test_keys_reach_the_search_and_the_help(desk: Desk) -> None:
    await desk.open("/overview")
    await desk.tab.press("/")
    await desk.tab.until("document.activeElement.id === 'q'")
    await desk.tab.js("document.activeElement.blur()")
    for _ in range(2):
        await desk.tab.press("?")
        await desk.tab.until("document.getElementById('help').open")
    await desk.tab.js("document.getElementById('help').close(); window.beforeLoading = true")
    await desk.tab.press("r")
    await desk.tab.until("!window.beforeLoading && document.readyState === 'complete'")


async def test_a_person_who_speaks_switches_the_keys_off_and_still_reaches_the_help(
    desk: Desk,
) -> None:
    """Speech input types letters (WCAG 2.1.4)."""
    await desk.open("/overview")
    try:
        await desk.tab.click("#keys", loads=False)
        await desk.open("/overview")
        said = await desk.tab.text()
        assert ("Keys off" in said, "r reload" in said) == (True, False)
        assert await acted(desk, "/?r") == [False] * 3
        await desk.tab.click("#show-help", loads=False)
        assert await desk.tab.js("document.getElementById('help').open")
        assert "r reload" not in await desk.tab.js("document.getElementById('help').innerText")
        await desk.tab.js("document.getElementById('help').close()")
        await desk.tab.click("#keys", loads=False)
        assert await acted(desk, "?/") == [True] * 2
    finally:
        await desk.tab.js("localStorage.removeItem('keys')")


async def acted(desk: Desk, keys: str) -> list[bool]:
    """Press keys; return of each whether the page took it."""
    await desk.tab.js(
        "window.acted = [];"
        " window.onkeydown = event => { window.acted.push(event.defaultPrevented); }; 0"
    )
    for key in keys:
        await desk.tab.press(key)
    found: list[bool] = await desk.tab.js("window.acted")
    return found


async def test_the_search_completes_its_last_word(desk: Desk) -> None:
    await desk.open("/overview")
    assert "checks:" in await offered(desk)
    await desk.open("/")
    await desk.tab.js(
        "var q = document.getElementById('q'); q.value = 'age:>5m gr';"
        "q.dispatchEvent(new Event('input'))"
    )
    completed = await offered(desk)
    assert "age:>5m group:" in completed
    assert "age:>5m group:billing" in completed


async def offered(desk: Desk) -> list[str]:
    """Return what the search box of the page suggests."""
    found: list[str] = await desk.tab.js(
        "Array.from(document.getElementById('qualifiers').options, each => each.value)"
    )
    return found


async def test_the_theme_and_the_clock_are_kept(desk: Desk) -> None:
    await desk.prepare()
    await desk.open("/")
    before = await desk.tab.js("document.querySelector('time:not([data-age])').textContent")
    assert before.endswith("UTC")
    await desk.tab.command("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    await desk.tab.click("#clock", loads=False)
    await desk.tab.click("#theme", loads=False)
    theme = await desk.tab.js("document.documentElement.dataset.theme")
    await desk.open("/")
    assert await desk.tab.js("document.documentElement.dataset.theme") == theme
    assert await desk.tab.js("document.getElementById('clock').textContent") == "Local time"
    titles = "Array.from(document.querySelectorAll('time[data-age]'), each => each.title)"
    local = await desk.tab.js(titles)
    assert local
    assert all(each.endswith("GMT+9") for each in local), local
    await desk.tab.command("Emulation.setTimezoneOverride", timezoneId="")
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


async def test_without_scripts_an_operator_decides_selected_messages(desk: Desk) -> None:
    first, other = [await desk.prepare(tags=["unscripted"]) for _ in range(2)]
    await desk.tab.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        await desk.open("/?q=state:prepared+tag:unscripted")
        assert not await desk.tab.js("document.querySelector('[data-all]').offsetParent")
        await desk.tab.click(f"input[value='{first}']", loads=False)
        await desk.tab.fill("#pick-prepared-action", "rollback")
        await desk.tab.click("#pick-prepared button")
        assert "takes 1 of the 1 selected messages" in await desk.tab.text()
        await desk.tab.fill("#bulk-reason", "its order does not exist")
        await desk.tab.click(".danger")
        assert "0 of 1 done" in await desk.tab.text()
    finally:
        await desk.tab.command("Emulation.setScriptExecutionDisabled", value=False)
    await begin_now(desk.pool)
    await desk.tab.point_at(1, 1)
    await desk.open(await desk_path(desk))
    await desk.tab.until("document.body.innerText.includes('finished: 1 of 1 done')")
    half = (await desk.listener.client.get(f"{HALVES}/{other}")).json()
    assert half["state"] == "PREPARED"


async def desk_path(desk: Desk) -> str:
    """Return the path of the page below the prefix."""
    return (await desk.tab.address()).removeprefix("/ui")


async def test_one_box_selects_a_list_which_rests_until_the_action_is_chosen(desk: Desk) -> None:
    await desk.tab.point_at(1, 1)
    ids = {await desk.prepare(tags=["boxed"]) for _ in range(3)}
    await desk.open("/?q=state:prepared+tag:boxed")
    await desk.tab.click("[data-all]", loads=False)
    ticked = "Array.from(document.querySelectorAll('input[name=message]:checked'), e => e.value)"
    assert set(await desk.tab.js(ticked)) == ids
    await desk.prepare(tags=["boxed"])
    await desk.tab.until("document.getElementById('paused').innerText.includes('filled in')")
    assert set(await desk.tab.js(ticked)) == ids
    await desk.tab.click("#pick-prepared button")
    assert "takes 3 of the 3 selected messages" in await desk.tab.text()


async def test_a_command_is_copied(desk: Desk) -> None:
    message_id = await desk.prepare()
    await desk.open(f"/messages/{message_id}")
    await desk.tab.js("navigator.clipboard.writeText = async text => { window.copied = text; }")
    await desk.tab.click("[data-copy=curl]", loads=False)
    await desk.tab.until("document.querySelector('[data-copy=curl]').textContent === 'Copied'")
    shown = await desk.tab.js("document.getElementById('curl').textContent")
    assert await desk.tab.js("window.copied") == shown
    assert shown.endswith(f'/v1/half-messages/{message_id}"')


async def test_an_operator_simulates_checks_and_reads_which_cases_did_not_pass(desk: Desk) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = {"check_url": producer.url}
        made = await desk.listener.client.put("/v1/producer-groups/simulated", json=group)
        assert made.status_code == 201, made.text
        await desk.open("/groups/simulated")
        await desk.does("form[action$='/simulate'] button")
        said = await desk.tab.js("document.getElementById('simulated').innerText")
    assert "11 of 12 cases did not pass." in said
    assert "a forged signature is refused: expected 401, got 200" in said
    assert desk.interactions == 1


async def test_the_charts_of_the_last_hour_have_their_words_as_names(desk: Desk) -> None:
    await desk.prepare()
    await desk.open("/overview")
    names = await desk.tab.js(
        "Array.from(document.querySelectorAll('svg.rate'),"
        " each => document.getElementById(each.getAttribute('aria-labelledby')).innerText)"
    )
    assert [each.split(":")[0] for each in names] == [
        "Prepared",
        "Committed",
        "Published to Kafka",
        "Checks made",
    ]
    async with asyncio.timeout(LIVENESS_SECONDS):  # the figures are some seconds old
        while not await desk.tab.js("document.querySelector('svg.rate .bar') !== null"):
            await asyncio.sleep(1)
            await desk.open("/overview")
    drawn = "document.querySelector('svg.rate .bar').getBoundingClientRect().height"
    assert await desk.tab.js(drawn) > 10
