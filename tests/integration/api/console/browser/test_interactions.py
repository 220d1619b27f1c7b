"""What operators do most, in Chromium: find by any id, read, cancel, narrow, filter and export.

The other interactions are in `test_browser.py` and `test_incidents.py`.
"""

from __future__ import annotations

import csv

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.messages.message_id import parse_message_id
from tests.integration.api.console.browser.fixtures_chromium import PROGRAM
from tests.integration.api.console.browser.fixtures_desk import Desk
from tests.integration.api.console.fixtures_overtaken_time import CHECKED
from tests.integration.api.fixtures_kafka_log import KafkaLog
from tests.integration.api.fixtures_rows import HALT, PARK, select
from tests.integration.api.fixtures_service import HALVES, prepare_body

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.kafka,
    pytest.mark.deep,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed"),
]
EARLIER = "UPDATE outbox.half_message SET prepared_at = prepared_at - %s::interval"
TRACE = "0af7651916cd43dd8448eb211c80319c"
FOOT = "Array.from(document.querySelectorAll('footer code'), each => each.textContent)"


@pytest.fixture(scope="module")
def module_brokers(kafka_broker: EmbeddedKafka) -> str:
    """Return the address of a broker with the topic of the manifests."""
    ensure_progress_topic(kafka_broker.bootstrap_servers)
    return kafka_broker.bootstrap_servers


async def test_one_box_finds_a_message_by_each_of_its_ids(desk: Desk, module_brokers: str) -> None:
    body = prepare_body(transaction_id="invoice/7731", key="cust-58")
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    made = (await desk.listener.client.post(HALVES, json=body, headers=headers)).json()
    topic, partition, offset = KafkaLog(module_brokers).write(made["message_id"])
    place = f"{topic}/{partition}@{offset}"
    for word in (made["message_id"], "invoice/7731", "cust-58", place, TRACE):
        await desk.open("/overview")
        await desk.tab.fill("#q", word)
        await desk.tab.click(".find button")
        assert await desk.tab.address() == f"/ui/messages/{made['message_id']}", word


async def test_publishing_shows_what_waits_where_consumers_stop_and_the_way_on_of_a_halted_shard(
    desk: Desk,
) -> None:
    message_id = await desk.prepare()
    await desk.listener.client.post(f"{HALVES}/{message_id}/end", json={"decision": "COMMIT"})
    await select(desk.pool, HALT)
    await desk.open("/publishing")
    shown = await desk.tab.text()
    assert "Shard 3: progress_lost" in shown
    assert "outbox shard resolve 3 --scan --reason TEXT" in shown
    assert "Last stable offset of 16 partitions" in shown
    assert message_id in shown


async def test_a_long_gap_of_a_timeline_has_another_colour_than_a_short_one(desk: Desk) -> None:
    colours = set()
    for age in ("10 s", "5 min", "1 h"):
        message_id = await desk.prepare()
        half_id = parse_message_id(message_id)[0]
        await select(desk.pool, f"{EARLIER} WHERE half_id = %s", age, half_id)
        await desk.open(f"/messages/{message_id}")
        assert "not yet visible to consumers" in await desk.tab.text()
        end = {"decision": "ROLLBACK"}
        await desk.listener.client.post(f"{HALVES}/{message_id}/end", json=end)
        await desk.open(f"/messages/{message_id}")
        for part in (".timeline", ".gap"):  # a short gap has the colour of the line
            style = f"getComputedStyle(document.querySelector('{part}'))"
            colours.add(await desk.tab.js(f"{style}.borderLeftColor"))
        assert "never visible to consumers" in await desk.tab.text()
    assert len(colours) == 4


async def test_a_click_on_a_cluster_narrows_to_it_and_its_action_is_cancelled_and_goes_on(
    desk: Desk,
) -> None:
    for outcome, status, count in (("timeout", None, 2), ("http_error", 500, 1)):
        ids = [await desk.prepare() for _ in range(count)]
        await select(desk.pool, CHECKED, outcome, status)
    await select(desk.pool, PARK)
    await desk.open("/parked")
    await desk.does("td.bad a[href*='http_error']")
    listed = "Array.from(document.querySelectorAll('td a.id'), each => each.textContent)"
    assert await desk.tab.js(listed) == ids
    await desk.does("#bulk-action ~ button")
    assert "matches 1 messages in the state PARKED" in await desk.tab.text()
    await desk.does("#bulk-reason", "the endpoint is back")
    await desk.does(".danger")
    assert "waiting: 0 of 1 done" in await desk.tab.text()
    await desk.does("form[action$='/cancel'] button")
    assert "cancelled: 0 of 1 done" in await desk.tab.text()
    await desk.does("form[action$='/resume'] button")
    assert "The action goes on where it stopped." in await desk.tab.text()
    await desk.does("form[action$='/cancel'] button")


async def test_back_and_a_reload_send_no_form_a_second_time(desk: Desk) -> None:
    await desk.prepare()
    await desk.open("/?q=state:prepared")
    await desk.tab.click("#bulk-action ~ button")
    await desk.open("/overview")
    await desk.tab.js("history.back()")
    await desk.tab.until("document.body.innerText.includes('Nothing was done.')")
    await desk.open("/groups/billing")
    await desk.tab.click("form[action$='/test'] button")
    assert "Reachable" in await desk.tab.text()
    assert await desk.tab.address() == "/ui/groups/billing"
    desk.tab.requested.clear()
    await desk.tab.js("location.reload()")
    await desk.tab.until("!document.body.innerText.includes('Reachable')")
    assert f"{desk.origin}/ui/groups/billing" in desk.tab.requested


async def test_the_audit_log_is_filtered_by_a_form_and_exported_as_it_is_shown(desk: Desk) -> None:
    ids = [await desk.prepare() for _ in range(2)]
    for message_id in ids:
        who = {"operator": "Grace", "reason": "its disk was full"}
        await desk.listener.client.post(f"{HALVES}/{message_id}/recheck", json=who)
    await desk.open("/audit")
    await desk.tab.fill("#operator", "Grace")
    await desk.tab.fill("#message_id", ids[0])
    await desk.tab.click(".filters button")
    assert ids[1] not in await desk.tab.text()
    assert await exported(desk, "target") == [ids[0]]
    shown = await desk.tab.js(FOOT)
    assert f"outbox audit list --operator Grace --message-id {ids[0]}" in shown


async def test_an_export_holds_what_the_search_shows(desk: Desk) -> None:
    ids = [await desk.prepare(tags=["exported"]) for _ in range(3)]
    await desk.prepare()
    await desk.open("/")
    await desk.tab.fill("#q", "state:prepared tag:exported")
    await desk.tab.click(".find button")
    assert await desk.tab.address() == "/ui/?q=state%3Aprepared+tag%3Aexported"
    assert "Looked at every message in this state." in await desk.tab.text()
    assert await exported(desk, "message_id") == ids[::-1]
    shown = await desk.tab.js(FOOT)
    assert "outbox message list --state PREPARED --tag exported" in shown
    assert [each for each in shown if each.startswith("GET /v1/half-messages?state=PREPARED&tag=")]


async def exported(desk: Desk, column: str) -> list[str]:
    """Return a column of the file behind the link of the page."""
    link = "Array.from(document.links).find(each => each.textContent === 'Export as CSV').href"
    await desk.tab.js(f"fetch({link}).then(a => a.text()).then(text => {{ window.csv = text; }})")
    await desk.tab.until("window.csv !== undefined")
    text = str(await desk.tab.js("window.csv"))
    return [row[column] for row in csv.DictReader(text.splitlines())]
