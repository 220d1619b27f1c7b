"""An action on many messages acts on all that match and on nothing else, and names what failed."""

from __future__ import annotations

import pytest

from outbox.messages.message_id import parse_message_id
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.admin.fixtures_bulk_actions import WHO, ask, finished
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import HALVES, Service, prepare_body

pytestmark = pytest.mark.postgres


async def test_refused_records_are_found_behind_many_newer_committed_messages(
    service: Service, pool: Pool
) -> None:
    refused = [await service.prepared_id(key=f"k-{n}", tags=["mine"]) for n in range(2)]
    newer = [await service.prepared_id(tags=["mine"]) for _ in range(5)]
    for message_id in (*refused, *newer):
        await service.end(message_id, "COMMIT")
    for message_id in refused:
        await hold(pool, message_id)
    dry = await ask(service, "release_held", {"tag": "mine"}, dry_run=True, max_items=3)
    assert (dry.json()["matched"], set(dry.json()["sample"])) == (2, set(refused))
    dropped = await ask(service, "drop_held", {"tag": "mine"}, max_items=2)
    result = await finished(service, dropped)
    assert (result["matched"], result["done"], result["failed"]) == (2, 2, 0)


async def test_a_state_bounds_an_action_also_beside_a_transaction(
    service: Service, pool: Pool
) -> None:
    await service.prepared_id(transaction_id="t-parked")
    await select(pool, PARK)
    await service.prepared_id(transaction_id="t-prepared")
    for state, transaction, matched in (
        ("PREPARED", "t-parked", 0),
        ("PARKED", "t-parked", 1),
        ("PREPARED", "t-prepared", 1),
        ("PARKED", "t-prepared", 0),
    ):
        filters = {"state": state, "transaction_id": transaction}
        dry = await ask(service, "force_end", filters, decision="COMMIT", dry_run=True)
        assert dry.json()["matched"] == matched, filters


@pytest.mark.parametrize(("conflicts", "named"), [(3, 3), (150, 100)])
async def test_the_first_failures_are_named_wherever_they_are_in_an_action(
    service: Service, pool: Pool, conflicts: int, named: int
) -> None:
    items = {"items": [prepare_body(tags=["mine"])] * 220}
    stored = (await service.client.post(f"{HALVES}/batch", json=items)).json()["items"]
    ids = sorted((each["result"]["message_id"] for each in stored), key=parse_message_id)
    answer = await ask(
        service, "force_end", {"tag": "mine"}, decision="ROLLBACK", delay_seconds=3600
    )
    ends = [{"message_id": each, "decision": "COMMIT"} for each in ids[-conflicts:]]
    await service.client.post(f"{HALVES}/end-batch", json={"items": ends})
    await select(pool, "UPDATE outbox.bulk_action SET starts_at = clock_timestamp()")
    await service.client.post(f"{answer.headers['location']}/resume", json=WHO)
    result = await finished(service, answer)
    assert (result["done"], result["failed"]) == (220 - conflicts, conflicts)
    assert result["failures"] == [
        {"message_id": each, "code": "already-ended"} for each in ids[-conflicts:][:named]
    ]
