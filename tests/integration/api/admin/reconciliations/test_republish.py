"""Lost messages are republished by finding: validated, audited, stored for the relay once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, LiteralString

import pytest

from outbox.access import Scope
from outbox.messages.message_id import parse_message_id
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.admin.fixtures_bulk_actions import BULK, WHO, ask, finished
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    NOON,
    make_finding,
    make_run,
)

pytestmark = pytest.mark.postgres

HELD: LiteralString = (
    "SELECT half_id, n, repair IS NOT NULL, released_at IS NULL"
    " FROM outbox.held_record ORDER BY half_id"
)


async def committed(service: Service, **fields: Any) -> str:
    """Prepare and commit a message; return its id."""
    message_id = await service.prepared_id(**fields)
    await service.end(message_id, "COMMIT")
    return message_id


def find(database_url: str, run_id: str, at: datetime = NOON, **causes: tuple[str, str]) -> None:
    """Save a run with one finding per name: (cause, message id)."""
    findings = [
        replace(make_finding(name, cause), half_id=parse_message_id(message_id)[0])
        for name, (cause, message_id) in causes.items()
    ]
    run = make_run(run_id, findings=tuple(findings), started_at=at, cut_at=at)
    PostgresRunStore(database_url).save(run)


async def test_a_plan_lists_the_messages_to_republish_and_the_refused_ones_with_reasons(
    service: Service, database_url: str, pool: Pool
) -> None:
    lost, skipped, altered, away, old = [await committed(service) for _ in range(5)]
    overtaken, _ = [await committed(service, key="one-key") for _ in range(2)]
    undecided = await service.prepared_id()
    find(database_url, "old", resolved=("LOST/published", old))
    find(
        database_url,
        "new",
        lost=("LOST/published", lost),
        skipped=("LOST/skipped", skipped),
        altered=("ALTERED/value", altered),
        away=("WRONG_PLACE/partition", away),
        overtaken=("LOST/published", overtaken),
        undecided=("LOST/published", undecided),
        gone=("LOST/published", "00000000-0000-8000-8000-000000000000"),
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
    finding = replace(make_finding("lost"), half_id=half_id, evidence={"ordered": False})
    PostgresRunStore(database_url).save(make_run("run", findings=(finding,)))
    plan = (await ask(service, "republish", {"finding_ids": ["lost"]}, dry_run=True)).json()
    assert (plan["matched"], plan["refused"]) == (1, [])


async def test_a_repair_that_no_run_has_judged_yet_is_not_made_again(
    service: Service, database_url: str, pool: Pool
) -> None:
    """The relay has published it, but the finding is open until the next run."""
    message_id = await committed(service)
    find(database_url, "run", one=("LOST/published", message_id))
    names = {"finding_ids": ["one"]}
    order: LiteralString = (
        "INSERT INTO outbox.bulk_action (action, operator, reason, starts_at, half_ids)"
        " SELECT 'republish', 'o', 'r', now(), array_agg(half_id) FROM outbox.half_message"
        " RETURNING id::text"
    )
    assert (await finished(service, await ask(service, "republish", names)))["done"] == 1
    publish: LiteralString = "UPDATE outbox.held_record SET released_at = clock_timestamp()"
    await select(pool, publish)
    plan = (await ask(service, "republish", names, dry_run=True)).json()
    assert plan["refused"] == [{"finding_id": "one", "code": "repair-pending"}]
    [(earlier,)] = await select(pool, order)
    await finished(service, await ask(service, "republish", names))
    assert (await service.client.get(f"{BULK}/{earlier}")).json()["done"] == 0
    find(
        database_url, "later", at=NOON + timedelta(days=36_525), one=("LOST/published", message_id)
    )
    assert (await finished(service, await ask(service, "republish", names)))["done"] == 1


async def test_a_key_republishes_for_its_own_groups_only(database_url: str, pool: Pool) -> None:
    async with guarded(database_url) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        await service.put_group()
        find(database_url, "run", one=("LOST/published", await committed(service)))
        body = {**WHO, "action": "republish", "filter": {"finding_ids": ["one"]}, "dry_run": True}
        other = await token(pool, Scope.OPS_FORCE, groups=("shop",))
        hidden = (await service.client.post(BULK, json=body, headers=other)).json()
        assert (hidden["matched"], hidden["refused"]) == (0, [])
        own = await token(pool, Scope.OPS_FORCE, groups=("billing",))
        shown = (await service.client.post(BULK, json=body, headers=own)).json()
        assert shown["matched"] == 1
