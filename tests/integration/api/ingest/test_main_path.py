"""The acceptance scenarios of prepare and end, over HTTP on a real database."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import UNKNOWN, select, stored
from tests.integration.api.fixtures_service import (
    HALVES,
    Service,
    prepare_body,
    running,
    settings_for,
)

pytestmark = pytest.mark.postgres


async def test_a1_a_commit_is_one_op_and_one_entry_of_the_commit_log(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id(
        key="cust-58", headers={"tenant": "north"}, transaction_id="invoice-7731"
    )
    answer = await service.end(message_id, "COMMIT", reason="paid")
    ended = answer.json()
    assert answer.status_code == 200
    assert ended.pop("decided_at").endswith("Z")
    assert ended == {
        "message_id": message_id,
        "state": "COMMITTED",
        "decision": "COMMIT",
        "decided_by": "producer",
        "already_ended": False,
        "publication": None,
    }
    assert await stored(pool) == (1, 1, 1, 1)


async def test_a3_an_unknown_end_changes_nothing(service: Service, pool: Pool) -> None:
    message_id = await service.prepared_id()
    before = (await service.client.get(f"{HALVES}/{message_id}")).json()
    answer = await service.end(message_id, "UNKNOWN")
    assert answer.status_code == 200
    assert answer.json() == {
        "message_id": message_id,
        "state": "PREPARED",
        "decision": None,
        "decided_by": None,
        "decided_at": None,
        "already_ended": False,
        "publication": None,
    }
    assert (await service.client.get(f"{HALVES}/{message_id}")).json() == before
    assert await stored(pool) == (1, 0, 0, 0)


async def test_a4_a_rollback_is_one_op_and_nothing_to_publish(service: Service, pool: Pool) -> None:
    message_id = await service.prepared_id()
    answer = await service.end(message_id, "ROLLBACK")
    assert (answer.status_code, answer.json()["state"]) == (200, "ROLLED_BACK")
    assert await stored(pool) == (1, 1, 0, 0)
    unknown = await service.end(message_id, "UNKNOWN")
    assert unknown.json()["decision"] == "ROLLBACK"
    assert unknown.json()["already_ended"] is True


async def test_a6_a_prepare_is_durable_before_its_answer(service: Service, pool: Pool) -> None:
    answer = await service.prepare(key="k", tags=["a"], check_immunity_seconds=60)
    assert answer.status_code == 201
    prepared = answer.json()
    assert answer.headers["location"] == f"{HALVES}/{prepared['message_id']}"
    assert prepared["state"] == "PREPARED"
    assert "idempotency-replayed" not in answer.headers
    rows = await select(
        pool,
        "SELECT prepared_at, key, value, check_immunity_seconds FROM outbox.half_message",
    )
    [(prepared_at, key, value, immunity)] = rows
    assert prepared_at.isoformat().replace("+00:00", "Z") == prepared["prepared_at"]
    assert (bytes(key), bytes(value), immunity) == (b"k", b"{}", 60)
    assert (await stored(pool))[3] == 0


@pytest.mark.parametrize("decision", ["COMMIT", "ROLLBACK", "UNKNOWN"])
async def test_a7_an_unknown_or_malformed_id_is_not_found_and_writes_nothing(
    service: Service, pool: Pool, decision: str
) -> None:
    known = await service.prepared_id()
    forged = known[:-1] + ("0" if known[-1] != "0" else "1")
    for message_id in (UNKNOWN, forged, "x", "0" * 36, "%00", "a" * 500):
        answer = await service.end(message_id, decision)
        assert (answer.status_code, answer.json()["code"]) == (404, "message-not-found")
    assert await stored(pool) == (1, 0, 0, 0)


async def test_a25_of_200_racing_ends_over_two_processes_exactly_one_wins(
    database_url: str, pool: Pool
) -> None:
    async with AsyncExitStack() as stack:
        services = [
            await stack.enter_async_context(running(settings_for(database_url))) for _ in range(2)
        ]
        assert (await services[0].put_group()).status_code == 201
        message_id = await services[0].prepared_id()
        answers = await asyncio.gather(
            *(
                services[n % 2].end(message_id, "COMMIT" if n % 4 < 2 else "ROLLBACK")
                for n in range(200)
            )
        )
    fresh = [
        each for each in answers if each.status_code == 200 and not each.json()["already_ended"]
    ]
    assert len(fresh) == 1
    winner = fresh[0].json()["decision"]
    for answer in answers:
        assert answer.status_code in (200, 409)
        named = answer.json()["winning_decision" if answer.status_code == 409 else "decision"]
        assert named == winner
    assert sum(answer.status_code == 409 for answer in answers) == 100
    assert await stored(pool) == (1, 1, 0, 1 if winner == "COMMIT" else 0)


async def test_a36_a_delay_is_refused_and_a_batch_decides_each_item_separately(
    service: Service, pool: Pool
) -> None:
    items = [prepare_body(value=str(n)) for n in range(3)]
    delayed = prepare_body(headers={"DELAY": "1"})
    answer = await service.client.post(f"{HALVES}/batch", json={"items": [*items, delayed]})
    assert answer.status_code == 207
    *prepared, refused = answer.json()["items"]
    assert (refused["index"], refused["problem"]["code"]) == (3, "delay-not-supported")
    assert (await stored(pool))[0] == 3
    kept = [each["result"]["message_id"] for each in prepared]
    ends = [
        {"message_id": kept[0], "decision": "COMMIT"},
        {"message_id": kept[1], "decision": "ROLLBACK"},
        {"message_id": kept[0], "decision": "ROLLBACK"},
        {"message_id": UNKNOWN, "decision": "COMMIT"},
        {"message_id": kept[2], "decision": "MAYBE"},
        {"message_id": kept[1], "decision": "ROLLBACK"},
    ]
    answer = await service.client.post(f"{HALVES}/end-batch", json={"items": ends})
    assert answer.status_code == 207
    results = answer.json()["items"]
    assert [result["status"] for result in results] == [200, 200, 409, 404, 422, 200]
    assert [results[n]["result"]["already_ended"] for n in (0, 1, 5)] == [False, False, True]
    assert (await stored(pool))[1] == 2
    metrics = (await service.client.get("/metrics")).text
    assert 'outbox_end_conflicts_total{decided_by="producer",decision="COMMIT"' in metrics


async def test_a37_a_repeated_prepare_is_replayed_and_a_changed_one_is_refused(
    service: Service, pool: Pool
) -> None:
    first = await service.prepare(transaction_id="t-1", key="a", headers={"x": "1", "y": "2"})
    again = await service.prepare(transaction_id="t-1", key="a", headers={"y": "2", "x": "1"})
    assert again.status_code == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    spelt = await service.prepare(
        transaction_id="t-1",
        key_base64="YQ==",
        value=...,
        value_base64="e30=",
        headers={"x": "1", "y": "2"},
    )
    assert spelt.json()["message_id"] == first.json()["message_id"]
    changes: tuple[dict[str, Any], ...] = (
        {"key": "b"},
        {"value": "[]"},
        {"headers": {}},
        {"tags": ["t"]},
        {"partition": 1},
    )
    for fields in changes:
        other = await service.prepare(
            **{"transaction_id": "t-1", "key": "a", "headers": {"x": "1", "y": "2"}, **fields}
        )
        assert (other.status_code, other.json()["code"]) == (422, "transaction-id-reused")
        assert other.json()["existing_message_id"] == first.json()["message_id"]
        assert other.json()["detail"].split()[0] in fields
    await service.end(first.json()["message_id"], "ROLLBACK")
    assert (await stored(pool))[0] == 1


async def test_prepares_are_refused_while_the_installation_is_drained(
    database_url: str, pool: Pool
) -> None:
    async with running(settings_for(database_url)) as service:
        await service.put_group()
        message_id = await service.prepared_id()
    async with running(settings_for(database_url, reject_half_messages=True)) as draining:
        answer = await draining.prepare()
        assert (answer.status_code, answer.json()["code"]) == (403, "half-messages-refused")
        assert (await draining.end(message_id, "COMMIT")).status_code == 200
    assert await stored(pool) == (1, 1, 0, 1)


async def test_a_missing_topic_is_created_first_where_it_is_allowed(database_url: str) -> None:
    async with running(settings_for(database_url, create_topics=True)) as service:
        await service.put_group()
        assert (await service.prepare(topic="brand.new")).status_code == 201
        assert "brand.new" in service.topics.counts
        refused = await service.prepare(topic="brand..new/")
        assert refused.status_code == 422
