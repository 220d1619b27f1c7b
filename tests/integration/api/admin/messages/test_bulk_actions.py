"""Actions on many messages by filter: dry run, limit, reason, audit, and the results."""

from __future__ import annotations

from typing import Any, LiteralString

import httpx2
import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.admin.fixtures_bulk_actions import AUDITED, BULK, WHO, ask, finished
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import (
    HALVES,
    Service,
    prepare_body,
)

pytestmark = pytest.mark.postgres


ASKED: LiteralString = "SELECT count(*) FROM outbox.bulk_action"


async def states(service: Service) -> dict[str, int]:
    """Count the messages by state."""
    query: dict[str, str] = {"limit": "500"}
    page = (await service.client.get(HALVES, params=query)).json()["data"]
    found = [each["state"] for each in page]
    return {state: found.count(state) for state in set(found)}


async def prepare_many(service: Service, count: int, **fields: Any) -> list[str]:
    """Prepare messages in one batch; return their ids."""
    body = {"items": [prepare_body(**fields)] * count}
    answer = await service.client.post(f"{HALVES}/batch", json=body)
    return [item["result"]["message_id"] for item in answer.json()["items"]]


async def test_a_dry_run_counts_and_samples_and_changes_nothing(
    service: Service, pool: Pool
) -> None:
    ids = await prepare_many(service, 3, tags=["mine"])
    await prepare_many(service, 2)
    answer = await ask(service, "force_end", {"tag": "mine"}, decision="ROLLBACK", dry_run=True)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["matched"], found["more"], set(found["sample"])) == (3, False, set(ids))
    nulls = {"tag": "mine", "finding_ids": None, "message_ids": None, "state": None}
    unset: dict[str, Any] = dict.fromkeys(("decision", "accept_order", "delay_seconds"))
    bounded = await ask(service, "recheck", nulls, dry_run=True, max_items=2, **unset)
    assert (bounded.json()["matched"], bounded.json()["more"]) == (2, True)
    assert await states(service) == {"PREPARED": 5}
    assert await select(pool, ASKED) == [(0,)]


async def test_all_matching_messages_are_ended_as_the_operator_and_each_is_audited(
    service: Service, pool: Pool
) -> None:
    await prepare_many(service, 250, tags=["mine"])
    await prepare_many(service, 2)
    begun = await ask(service, "force_end", {"tag": "mine"}, decision="COMMIT")
    result = await finished(service, begun)
    assert (result["matched"], result["done"], result["failed"]) == (250, 250, 0)
    assert await states(service) == {"COMMITTED": 250, "PREPARED": 2}
    assert await select(pool, AUDITED, "bulk|force_end") == [
        ("bulk.force_end", "ops@example", "endpoint is back", 1),
        ("message.force_end", "ops@example", "endpoint is back", 250),
    ]
    detail = await select(pool, "SELECT detail FROM outbox.audit_log WHERE action ~ 'bulk'")
    assert detail == [({"filter": {"tag": "mine"}, "matched": 250},)]


async def test_a_message_decided_meanwhile_is_a_failure_and_keeps_its_decision(
    service: Service, pool: Pool
) -> None:
    ids = await prepare_many(service, 3)
    begin: LiteralString = (
        "INSERT INTO outbox.bulk_action (action, decision, operator, reason, starts_at, half_ids)"
        " SELECT 'force_end', 'ROLLBACK', 'o', 'r', now(), array_agg(half_id ORDER BY half_id)"
        " FROM outbox.half_message RETURNING id::text"
    )
    await service.end(ids[0], "COMMIT")
    [(number,)] = await select(pool, begin)
    stub = httpx2.Response(202, headers={"location": f"{BULK}/{number}"})
    result = await finished(service, stub)
    assert (result["done"], result["failed"]) == (2, 1)
    assert result["failures"] == [{"message_id": ids[0], "code": "already-ended"}]
    assert await states(service) == {"COMMITTED": 1, "ROLLED_BACK": 2}


async def test_an_action_without_filter_or_reason_or_above_its_limit_is_refused(
    service: Service, pool: Pool, subtests: pytest.Subtests
) -> None:
    await prepare_many(service, 3)
    everything = {"producer_group": "billing"}
    refused: list[tuple[str, dict[str, Any], str, str]] = [
        ("no filter", {"filter": {}}, "filter-too-broad", "/filter"),
        ("too many", {"max_items": 2}, "filter-too-broad", "/filter"),
        ("no reason", {"reason": ""}, "invalid-request", "/reason"),
        ("decided ones", {"filter": {"state": "COMMITTED"}}, "invalid-request", "/filter/state"),
        ("a decision", {"decision": "COMMIT"}, "invalid-request", ""),
        ("no decision", {"action": "force_end"}, "invalid-request", ""),
        ("unknown filter", {"filter": {"colour": "red"}}, "invalid-request", "/filter/colour"),
        ("above the bound", {"max_items": 100_001}, "invalid-request", "/max_items"),
    ]
    for name, change, slug, pointer in refused:
        with subtests.test(name):
            body = {**WHO, "action": "recheck", "filter": everything, **change}
            answer = await service.client.post(BULK, json=body)
            assert (answer.status_code, answer.json()["code"]) == (422, slug)
            assert answer.json()["errors"][0]["pointer"] == pointer
    assert await select(pool, ASKED) == [(0,)]


async def test_an_action_waits_for_its_delay_and_is_cancelled_for_good(
    service: Service, pool: Pool
) -> None:
    [message_id] = await prepare_many(service, 1, tags=["mine"])
    answer = await ask(
        service, "force_end", {"tag": "mine"}, decision="ROLLBACK", delay_seconds=3600
    )
    begun, place = answer.json(), answer.headers["location"]
    assert (answer.status_code, begun["status"]) == (202, "waiting")
    assert 3500 < begun["starts_in_seconds"] <= 3600
    await finished(service, await ask(service, "recheck", {"tag": "mine"}))  # begins later
    cancelled = (await service.client.post(f"{place}/cancel", json=WHO)).json()
    assert (cancelled["status"], cancelled["done"]) == ("cancelled", 0)
    again = (await service.client.post(f"{place}/cancel", json=WHO)).json()
    assert again == (await service.client.get(place)).json() == cancelled
    await select(pool, "UPDATE outbox.bulk_action SET starts_at = clock_timestamp()")
    await finished(service, await ask(service, "recheck", {"tag": "mine"}))
    state = (await service.client.get(f"{HALVES}/{message_id}")).json()["state"]
    assert state == "PREPARED"
    assert await select(pool, AUDITED, "cancel") == [("bulk.cancel", *WHO.values(), 1)]
