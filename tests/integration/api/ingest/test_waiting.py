"""The wait for Kafka's acknowledgement, and the refusals above the limit of requests."""

from __future__ import annotations

import asyncio

import pytest

from api.http import admission
from api.ingest import publication_wait
from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_rows import (
    publish,
    select,
    stored,
    until_a_session_waits,
)
from tests.integration.api.fixtures_service import (
    GROUPS,
    HALVES,
    TOPIC,
    Service,
    running,
    settings_for,
)

pytestmark = pytest.mark.postgres

A_REQUEST = 18_000
"""What a prepare, a read or an end of these tests takes in memory, at most."""


async def test_only_an_end_with_a_wait_asks_the_relay_to_hurry(
    service: Service, pool: Pool
) -> None:
    await service.end(await service.prepared_id(), "COMMIT")
    await service.end(await service.prepared_id(), "COMMIT", headers={"Prefer": "wait=0"})
    await service.end(await service.prepared_id(), "COMMIT", headers={"Prefer": "wait=1"})
    marked = "SELECT awaited FROM outbox.commit_log ORDER BY xid"
    marks = await select(pool, marked)
    assert [awaited for (awaited,) in marks] == [False, False, True]


async def test_prefer_wait_answers_as_soon_as_kafka_has_acknowledged(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id()
    ending = asyncio.create_task(
        service.end(message_id, "COMMIT", headers={"Prefer": "respond-async, wait=30"})
    )
    async with asyncio.timeout(60):
        while (await stored(pool))[3] == 0:
            pass
    await publish(pool)
    answer = await ending
    published = answer.json()
    assert (answer.status_code, published["state"]) == (200, "PUBLISHED")
    place = published["publication"]
    assert (place["topic"], place["partition"], place["offset"]) == (TOPIC, 2, 41)
    shown = (await service.client.get(f"{HALVES}/{message_id}")).json()
    assert shown["state"] == "PUBLISHED"
    history = (await service.client.get(f"{HALVES}/{message_id}/history")).json()
    assert [event["type"] for event in history["events"]] == ["prepared", "decided", "published"]


async def test_at_the_limit_of_requests_prepares_and_reads_are_refused_and_ends_pass(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MEMORY_BYTES", 3 * A_REQUEST)
    async with running(settings_for(database_url)) as service:
        await service.put_group()
        message_id = await service.prepared_id()
        async with pool.connection() as holder, holder.transaction():
            await holder.execute("LOCK TABLE outbox.half_message IN ACCESS EXCLUSIVE MODE")
            waiting = asyncio.create_task(service.prepare())
            await until_a_session_waits(pool)
            refused = await service.client.get(GROUPS)
            assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
            assert int(refused.headers["retry-after"]) >= 1
            assert (await service.prepare()).status_code == 503
            assert (await service.client.get("/livez")).status_code == 200
            ending = asyncio.create_task(service.end(message_id, "COMMIT"))
        assert (await waiting).status_code == 201
        assert (await ending).status_code == 200


async def test_ends_that_wait_for_kafka_refuse_nobody(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MEMORY_BYTES", 11 * A_REQUEST)
    async with running(settings_for(database_url)) as service:
        await service.put_group()
        ids = [await service.prepared_id() for _ in range(5)]
        waiting = [
            asyncio.create_task(service.end(each, "COMMIT", headers={"Prefer": "wait=30"}))
            for each in ids
        ]
        async with asyncio.timeout(60):
            while (await stored(pool))[1] < len(ids):
                pass
            while (refused := await service.prepare()).status_code != 201:
                assert refused.status_code == 503
                await asyncio.sleep(0)  # no socket is between this client and the service
        assert (await service.client.get(HALVES)).status_code == 200
        assert not all(task.done() for task in waiting)
        for task in waiting:
            task.cancel()


async def test_beyond_the_cap_of_waiters_the_answer_comes_at_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication_wait, "WAITING_MAX", 4)
    async with running(settings_for(database_url)) as service:
        await service.put_group()
        await beyond_the_cap(service)


async def beyond_the_cap(service: Service) -> None:
    """Take the places of two, of four, and then ask for more."""
    ids = [await service.prepared_id() for _ in range(4)]
    long = {"Prefer": "wait=30"}
    item = [{"message_id": each, "decision": "COMMIT"} for each in ids]
    async with asyncio.timeout(20):
        batch = await service.client.post(f"{HALVES}/end-batch", json={"items": item}, headers=long)
    assert batch.status_code == 207
    assert {each["result"]["publication"] for each in batch.json()["items"]} == {None}
    assert "preference-applied" not in batch.headers
    waiting = [asyncio.create_task(service.end(each, "COMMIT", headers=long)) for each in ids[:2]]
    for _ in range(3):  # flushed after the two, which wait now
        await service.end(ids[2], "COMMIT")
    async with asyncio.timeout(20):
        answer = await service.end(ids[3], "COMMIT", headers=long)
    assert "preference-applied" not in answer.headers
    assert (answer.status_code, answer.json()["publication"]) == (200, None)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    again = await service.end(ids[3], "COMMIT", headers={"Prefer": "wait=1"})
    assert again.headers["preference-applied"] == "wait=1"


async def test_a_tenant_with_many_waits_leaves_places_to_another_tenant(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication_wait, "WAITING_MAX", 8)
    async with guarded(database_url) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        await service.put_group("many")
        await service.put_group("one")
        ids = [await service.prepared_id(producer_group="many") for _ in range(9)]
        other_id = await service.prepared_id(producer_group="one")
        many = await token(pool, Scope.MESSAGES_END, groups=("many",))
        one = await token(pool, Scope.MESSAGES_END, groups=("one",))
        long = {**many, "Prefer": "wait=10"}
        waiting = [asyncio.create_task(service.end(each, "COMMIT", headers=long)) for each in ids]
        async with asyncio.timeout(20):
            refused, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert all("preference-applied" not in each.result().headers for each in refused)
        other = await service.end(other_id, "COMMIT", headers={**one, "Prefer": "wait=1"})
        assert other.headers.get("preference-applied") == "wait=1"
        for task in waiting:
            task.cancel()
