"""Recheck and force-end: each operator action is audited and is in the history."""

from __future__ import annotations

from typing import LiteralString

import pytest

from outbox.errors import MessageNotFound
from outbox.messages.message_id import Nonce, parse_message_id
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.operators.operations import PostgresOperations
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import CHECKED, PARK, UNKNOWN, select, stored
from tests.integration.api.fixtures_service import HALVES, Service

pytestmark = pytest.mark.postgres

WHO = {"operator": "ops@example", "reason": "endpoint is back"}
QUEUED: LiteralString = (
    "SELECT delay_seconds, round, check_count, only_unknown, due_at <= clock_timestamp(),"
    " age_from = due_at FROM outbox.check_queue ORDER BY id"
)


async def test_a17_a_parked_message_returns_once_and_the_second_recheck_only_makes_it_due(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id()
    await select(pool, CHECKED, 1, 1, "unknown")
    await select(pool, PARK)
    first = await service.client.post(f"{HALVES}/{message_id}/recheck", json=WHO)
    assert first.status_code == 202, first.text
    assert (first.json()["message_id"], first.json()["state"]) == (message_id, "PREPARED")
    assert await select(pool, QUEUED) == [(0, 2, 0, True, True, True)]
    second = await service.client.post(f"{HALVES}/{message_id}/recheck", json=WHO)
    assert second.status_code == 202
    rows = await select(pool, QUEUED)
    assert rows[1] == (0, 3, 0, True, True, False)
    assert await select(pool, "SELECT round FROM outbox.recheck") == [(3,)]
    shown = (await service.client.get(f"{HALVES}/{message_id}")).json()
    assert (shown["state"], shown["check_count"]) == ("PREPARED", 0)
    classes = "SELECT count(*) FROM outbox.check_class WHERE producer_group_id = 1"
    assert await select(pool, classes) == [(1,)]


async def test_a_decided_message_cannot_be_rechecked(service: Service, pool: Pool) -> None:
    message_id = await service.prepared_id()
    await service.end(message_id, "ROLLBACK")
    answer = await service.client.post(f"{HALVES}/{message_id}/recheck", json=WHO)
    assert (answer.status_code, answer.json()["code"]) == (409, "not-recheckable")
    assert await select(pool, QUEUED) == []
    missing = await service.client.post(f"{HALVES}/{UNKNOWN}/recheck", json=WHO)
    assert (missing.status_code, missing.json()["code"]) == (404, "message-not-found")


async def test_an_operators_decision_wins_like_any_other_and_is_audited(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id()
    at = f"{HALVES}/{message_id}/force-end"
    first = await service.client.post(at, json={**WHO, "decision": "ROLLBACK"})
    assert first.status_code == 200
    assert (first.json()["state"], first.json()["decided_by"]) == ("ROLLED_BACK", "operator")
    again = await service.client.post(at, json={**WHO, "decision": "ROLLBACK"})
    assert again.json()["already_ended"] is True
    other = await service.client.post(at, json={**WHO, "decision": "COMMIT"})
    assert (other.status_code, other.json()["code"]) == (409, "already-ended")
    assert other.json()["winning_decision"] == "ROLLBACK"
    assert await stored(pool) == (1, 1, 0, 0)
    audit = await select(
        pool,
        "SELECT action, operator, reason, detail->>'applied' FROM outbox.audit_log"
        " WHERE half_id IS NOT NULL ORDER BY id",
    )
    row = ("message.force_end", WHO["operator"], WHO["reason"])
    assert audit == [(*row, "true"), (*row, "false"), (*row, "false")]
    late = await service.end(message_id, "COMMIT")
    assert (late.status_code, late.json()["decided_by"]) == (409, "operator")


async def test_the_history_has_every_event_in_order(service: Service, pool: Pool) -> None:
    message_id = await service.prepared_id()
    await select(pool, CHECKED, 1, 1, "unknown")
    await select(pool, PARK)
    await service.client.post(f"{HALVES}/{message_id}/recheck", json=WHO)
    await service.end(message_id, "COMMIT", reason="late")
    history = (await service.client.get(f"{HALVES}/{message_id}/history")).json()
    assert history["message_id"] == message_id
    events = history["events"]
    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5]
    assert [event["type"] for event in events] == [
        "prepared",
        "check",
        "parked",
        "recheck",
        "decided",
    ]
    assert events[1]["outcome"] == "unknown"
    assert events[3]["operator"] == WHO["operator"]
    assert (events[4]["decision"], events[4]["reason"]) == ("COMMIT", "late")


async def test_a_message_that_got_the_id_of_one_that_a_failover_lost_is_not_taken_for_it(
    service: Service, pool: Pool
) -> None:
    half_id, nonce = parse_message_id(await service.prepared_id())
    lost = Nonce(nonce ^ 1)
    action = OperatorAction(operator="ops@example", reason="endpoint is back", key_id=None)
    with pytest.raises(MessageNotFound):
        await PostgresOperations(pool).recheck(half_id, lost, action)
    with pytest.raises(MessageNotFound):
        await PostgresMessageBrowser(pool).history(half_id, lost)
    assert await select(pool, QUEUED) == []
