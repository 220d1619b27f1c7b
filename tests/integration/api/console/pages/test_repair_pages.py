"""What holds publishing up, the audit log, ended keys and the doctor, as pages without scripts."""

from __future__ import annotations

import csv
import re

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.access import Scope
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Browser, logged_in
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import HALT, select
from tests.integration.api.fixtures_service import Service

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


async def held_id(service: Service, pool: Pool, key: str) -> str:
    """Return the id of a message that Kafka refuses."""
    message_id = await service.prepared_id(key=key)
    await service.end(message_id, "COMMIT")
    await hold(pool, message_id)
    return message_id


async def test_a_held_record_is_published_again_or_given_up_with_a_reason(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE, Scope.REPORTS_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        again, given_up = [await held_id(service, pool, f"k-{n}") for n in range(2)]
        await select(pool, "UPDATE outbox.topic SET max_message_bytes = 2000")
        page = await browser.get("/ui/publishing")
        assert "the topic takes records of 2 000" in page.text
        assert "--entity-name invoices.issued --add-config max.message.bytes=1048576" in page.text
        assert page.text.count("invoices.issued MSG_SIZE_TOO_LARGE") == 2
        at = f"/ui/held/{again}"
        unreasoned = await browser.send(page, at, action="release")
        assert unreasoned.status == 422
        released = await browser.send(page, at, action="release", reason="it is repaired")
        assert "The relay tries the record again" in released.text
        at = f"/ui/held/{given_up}"
        dropped = await browser.send(released, at, action="drop", reason="sent by hand")
        assert "The record is given up" in dropped.text
        assert at not in dropped.forms()
        message = await browser.get(f"/ui/messages/{given_up}")
        for shown in ("sent by hand", "never visible to consumers", "that is final"):
            assert shown in message.text
        assert (await browser.send(page, at, action="drop", reason="again")).status == 409
        assert (await browser.send(page, at, action="burn", reason="r")).status == 422
        audit = await browser.get("/ui/audit?operator=Ada")
        assert "held.release" in audit.text
        assert "held.drop" in audit.text


async def test_a_halted_shard_shows_the_way_on_and_a_partition_where_consumers_stop(
    database_url: str, pool: Pool, kafka_broker: EmbeddedKafka
) -> None:
    servers = kafka_broker.bootstrap_servers
    ensure_progress_topic(servers)
    await select(pool, HALT)
    scopes = (Scope.MESSAGES_READ, Scope.REPORTS_READ)
    there = logged_in(database_url, pool, *scopes, kafka_bootstrap_servers=servers)
    async with there as (_, browser):
        page = await browser.get("/ui/publishing")
        assert "Shard 3 : progress_lost , 0 messages wait: the next manifests" in page.text
        assert "outbox shard resolve 3 --scan --reason TEXT" in page.text
        assert "Last stable offset of 16 partitions" in page.text
        assert re.search(r"outbox\.progress 15 \d+ \d+ 0 -", page.text)
        system = await browser.get("/ui/system")
        assert re.search(r"halted shards : failed . 3: progress_lost", system.text)
        assert "1 broker(s)" in system.text
        assert "A key of all groups with the scope admin sees it." in system.text


async def test_the_audit_log_is_filtered_and_exported_as_it_is_filtered(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.OPS_FORCE, Scope.REPORTS_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        service.topics.counts["orders"] = 1
        mine = await service.prepared_id(topic="orders", transaction_id="t-1")
        theirs = await service.prepared_id()
        await recheck(browser, mine, "the endpoint is back")
        await recheck(browser, theirs, "=1+1")
        for query in (f"message_id={mine}", "transaction_id=t-1", "topic=orders"):
            page = await browser.get(f"/ui/audit?{query}")
            assert "the endpoint is back" in page.text
            assert theirs not in page.html
        [link] = re.findall(r'href="([^"]+/audit/export[^"]*)"', page.html)
        answer = await browser.client.get(link.replace("&amp;", "&"))
        assert [row["target"] for row in csv.DictReader(answer.text.splitlines())] == [mine]
        whole = await browser.client.get("/ui/audit/export?action=message.recheck&operator=Ada")
        rows = list(csv.DictReader(whole.text.splitlines()))
        assert [row["target"] for row in rows] == [theirs, mine]
        assert rows[0]["reason"] == "'=1+1"
        assert (await browser.get("/ui/audit?at_from=yesterday")).status == 422


async def recheck(browser: Browser, message_id: str, reason: str) -> None:
    """Intervene in a message."""
    page = await browser.get(f"/ui/messages/{message_id}")
    sent = await browser.send(page, f"/ui/messages/{message_id}/recheck", reason=reason)
    assert sent.status == 200, sent.text
