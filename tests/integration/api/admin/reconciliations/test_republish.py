"""Lost messages are republished by finding: validated, audited, stored for the relay once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, LiteralString

import pytest

from outbox.access import Scope
from outbox.messages.message_id import parse_message_id
from outbox.postgres.operators.repairs import PostgresRepairs
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_new_rows import NEW_HALVES
from tests.integration.api.admin.fixtures_bulk_actions import AUDITED, BULK, WHO, ask, finished
from tests.integration.api.fixtures_keys import PEPPER, RING, token
from tests.integration.api.fixtures_rows import select, until_a_session_waits
from tests.integration.api.fixtures_service import Service, running, settings_for
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    NOON,
    make_finding,
    make_run,
)

pytestmark = pytest.mark.postgres

HELD: LiteralString = (
    "SELECT half_id, n, repair IS NOT NULL, released_at IS NULL, payload ->> 'producer_group'"
    f" FROM outbox.held_record WHERE {NEW_HALVES} ORDER BY half_id"
)


async def committed(service: Service, **fields: Any) -> str:
    """Prepare and commit a message; return its id."""
    message_id = await service.prepared_id(**fields)
    await service.end(message_id, "COMMIT")
    return message_id


def find(database_url: str, run_id: str, at: datetime = NOON, **classes: tuple[str, str]) -> None:
    """Save a run with one finding per name: (class, message id)."""
    findings = [
        replace(
            make_finding(name), half_id=parse_message_id(message_id)[0], finding_class=finding_class
        )
        for name, (finding_class, message_id) in classes.items()
    ]
    run = make_run(run_id, findings=tuple(findings), started_at=at, cut_at=at)
    PostgresRunStore(database_url).save(run)


async def test_a_plan_lists_the_messages_to_republish_and_the_refused_ones_with_reasons(
    service: Service, database_url: str, pool: Pool
) -> None:
    lost, skipped, altered, away, old = [await committed(service) for _ in range(5)]
    overtaken, _ = [await committed(service, key="one-key") for _ in range(2)]
    undecided = await service.prepared_id()
    find(database_url, "old", resolved=("LOST", old))
    find(
        database_url,
        "new",
        lost=("LOST", lost),
        skipped=("SKIPPED", skipped),
        altered=("CORRUPT_VALUE", altered),
        away=("WRONG_PARTITION", away),
        overtaken=("LOST", overtaken),
        undecided=("LOST", undecided),
        gone=("LOST", "00000000-0000-8000-8000-000000000000"),
    )
    names = ["lost", "skipped", "altered", "away", "overtaken", "undecided", "gone", "resolved"]
    names += ["nothing"]
    answer = await ask(service, "republish", {"finding_ids": names}, dry_run=True)
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert (plan["matched"], set(plan["sample"])) == (3, {lost, skipped, altered})
    assert {each["finding_id"]: each["code"] for each in plan["refused"]} == {
        "away": "not-lost",
        "overtaken": "order-risk",
        "undecided": "not-stored",
        "gone": "not-stored",
        "resolved": "not-open",
    }
    accepted = await ask(
        service, "republish", {"finding_ids": ["overtaken"]}, dry_run=True, accept_order=True
    )
    assert accepted.json()["matched"] == 1
    assert await select(pool, HELD) == []


async def test_on_a_topic_without_order_a_newer_message_of_the_key_does_not_prevent_a_repair(
    service: Service, database_url: str
) -> None:
    lost, _ = [await committed(service, key="one-key") for _ in range(2)]
    half_id = parse_message_id(lost)[0]
    finding = replace(make_finding("lost"), half_id=half_id, detail={"ordered": False})
    PostgresRunStore(database_url).save(make_run("run", findings=(finding,)))
    plan = (await ask(service, "republish", {"finding_ids": ["lost"]}, dry_run=True)).json()
    assert (plan["matched"], plan["refused"]) == (1, [])


@pytest.mark.parametrize("changed", ["value = 'x'", "headers = '{odd}'"])
async def test_a_message_whose_stored_content_changed_is_not_republished(
    service: Service, database_url: str, pool: Pool, changed: LiteralString
) -> None:
    intact, rotten = [await committed(service) for _ in range(2)]
    find(database_url, "run", intact=("LOST", intact), rotten=("LOST", rotten))
    rot: LiteralString = f"UPDATE outbox.half_message SET {changed} WHERE half_id = %s"
    await select(pool, rot, parse_message_id(rotten)[0])
    names = {"finding_ids": ["intact", "rotten"]}
    plan = (await ask(service, "republish", names, dry_run=True)).json()
    assert plan["sample"] == [intact]
    assert plan["refused"] == [{"finding_id": "rotten", "code": "digest-differs"}]


async def test_an_ordered_repair_is_stored_once_and_audited(
    service: Service, database_url: str, pool: Pool
) -> None:
    ids = [await committed(service, key=key) for key in ("a", "b")]
    find(database_url, "run", one=("LOST", ids[0]), two=("LOST", ids[1]))
    names = {"finding_ids": ["one", "two"]}
    result = await finished(service, await ask(service, "republish", names))
    assert (result["matched"], result["done"], result["failed"]) == (2, 2, 0)
    halves = sorted(parse_message_id(each)[0] for each in ids)
    assert await select(pool, HELD) == [(half, 1, True, True, "billing") for half in halves]
    repairs: LiteralString = f"SELECT DISTINCT repair FROM outbox.held_record WHERE {NEW_HALVES}"
    assert await select(pool, repairs) == [(result["id"],)]
    assert await select(pool, AUDITED, "republish") == [
        ("bulk.republish", "ops@example", "endpoint is back", 1),
        ("message.republish", "ops@example", "endpoint is back", 2),
    ]
    again = await ask(service, "republish", names, dry_run=True)
    assert {each["code"] for each in again.json()["refused"]} == {"repair-pending"}
    nothing = await finished(service, await ask(service, "republish", names))
    assert (nothing["matched"], nothing["done"]) == (0, 0)


async def test_a_message_that_was_released_or_dropped_may_still_be_repaired(
    service: Service, database_url: str, pool: Pool
) -> None:
    message_id = await committed(service)
    find(database_url, "run", one=("LOST", message_id))
    before: LiteralString = (
        "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n, publish_error,"
        " attempts, released_at, released_offset) SELECT half_id, nonce, half_id & 15, topic_id, 1,"
        " 1, 'too large', 3, clock_timestamp(), 7 FROM outbox.half_message"
        f" WHERE {NEW_HALVES}"
    )
    await select(pool, before)
    result = await finished(service, await ask(service, "republish", {"finding_ids": ["one"]}))
    assert result["done"] == 1
    after: LiteralString = (
        "SELECT attempts, released_at, released_offset, repair IS NOT NULL FROM outbox.held_record"
        f" WHERE {NEW_HALVES}"
    )
    assert await select(pool, after) == [(0, None, None, True)]


async def test_a_repair_that_no_run_has_judged_yet_is_not_made_again(
    service: Service, database_url: str, pool: Pool
) -> None:
    """The relay has published it, but the finding is open until the next run."""
    message_id = await committed(service)
    find(database_url, "run", one=("LOST", message_id))
    names = {"finding_ids": ["one"]}
    order: LiteralString = (
        "INSERT INTO outbox.bulk_action (action, operator, reason, half_ids)"
        " SELECT 'republish', 'o', 'r', array_agg(half_id) FROM outbox.half_message"
        f" WHERE {NEW_HALVES} RETURNING id::text"
    )
    assert (await finished(service, await ask(service, "republish", names)))["done"] == 1
    publish: LiteralString = (
        f"UPDATE outbox.held_record SET released_at = clock_timestamp() WHERE {NEW_HALVES}"
    )
    await select(pool, publish)
    plan = (await ask(service, "republish", names, dry_run=True)).json()
    assert plan["refused"] == [{"finding_id": "one", "code": "repair-pending"}]
    [(earlier,)] = await select(pool, order)
    await finished(service, await ask(service, "republish", names))
    assert (await service.client.get(f"{BULK}/{earlier}")).json()["done"] == 0
    find(database_url, "later", at=NOON + timedelta(days=36_525), one=("LOST", message_id))
    assert (await finished(service, await ask(service, "republish", names)))["done"] == 1


async def test_a_finding_that_closed_after_its_order_is_not_repaired(
    service: Service, database_url: str, pool: Pool
) -> None:
    message_id = await committed(service)
    find(database_url, "one", one=("LOST", message_id))
    begin: LiteralString = (
        "INSERT INTO outbox.bulk_action (action, operator, reason, half_ids)"
        " SELECT 'republish', 'o', 'r', array_agg(half_id) FROM outbox.half_message"
        f" WHERE {NEW_HALVES} RETURNING id::text"
    )
    PostgresRunStore(database_url).save(make_run("two"))
    [(number,)] = await select(pool, begin)
    begun = await ask(service, "republish", {"finding_ids": ["one"]})
    await finished(service, begun)
    found = (await service.client.get(f"{BULK}/{number}")).json()
    assert (found["status"], found["done"], found["failed"]) == ("finished", 0, 1)
    assert found["failures"] == [{"message_id": message_id, "code": "not-repairable"}]
    assert await select(pool, HELD) == []


async def test_findings_and_other_filters_cannot_be_combined(
    service: Service, subtests: pytest.Subtests
) -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("republish", {"topic": "invoices.issued"}),
        ("republish", {}),
        ("republish", {"finding_ids": []}),
        ("republish", {"finding_ids": ["one"], "topic": "invoices.issued"}),
        ("recheck", {"finding_ids": ["one"]}),
    ]
    for action, filters in refused:
        with subtests.test(action, filters=filters):
            answer = await ask(service, action, filters)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    ordered = await ask(service, "recheck", {"producer_group": "billing"}, accept_order=True)
    assert ordered.status_code == 422


async def test_a_key_republishes_for_its_own_groups_only(database_url: str, pool: Pool) -> None:
    keys = {"auth_mode": "keys", "auth_pepper": PEPPER, "encryption_keys": RING}
    async with running(settings_for(database_url, **keys)) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        await service.put_group()
        find(database_url, "run", one=("LOST", await committed(service)))
        body = {**WHO, "action": "republish", "filter": {"finding_ids": ["one"]}, "dry_run": True}
        other = await token(pool, Scope.OPS_FORCE, groups=("shop",))
        hidden = (await service.client.post(BULK, json=body, headers=other)).json()
        assert (hidden["matched"], hidden["refused"]) == (0, [])
        own = await token(pool, Scope.OPS_FORCE, groups=("billing",))
        shown = (await service.client.post(BULK, json=body, headers=own)).json()
        assert shown["matched"] == 1


async def test_a_plan_may_take_longer_than_other_requests_because_it_reads_all_messages(
    database_url: str, pool: Pool
) -> None:
    async with make_pool(database_url, "test", pool_max=1, answer_seconds=0.2) as impatient:
        async with pool.connection() as holder, holder.transaction():
            await holder.execute("LOCK TABLE outbox.reconciliation_finding")
            plan = asyncio.create_task(PostgresRepairs(impatient).plan([], None, accept_order=True))
            await until_a_session_waits(pool)
            await asyncio.wait([plan], timeout=0.5)
        assert await plan == []
