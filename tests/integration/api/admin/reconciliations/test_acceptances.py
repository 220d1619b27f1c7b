"""Findings that an operator accepts are not counted until a time; then they are open again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, LiteralString

import pytest

from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.messages.message_id import parse_message_id
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from outbox.reconciliation.run import ExpiredEvidence
from tests.integration.api.admin.fixtures_bulk_actions import AUDITED, BULK, WHO, ask
from tests.integration.api.fixtures_keys import PEPPER, RING, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service, running, settings_for
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    make_finding,
    make_run,
    statuses,
)

pytestmark = pytest.mark.postgres

ACCEPT = "accept_finding"


def tomorrow() -> str:
    """Return a future time."""
    return (SystemClock().now() + timedelta(days=1)).isoformat()


async def test_an_accepted_finding_is_not_counted_and_each_acceptance_is_audited(
    bare_service: Service, database_url: str, pool: Pool
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b", "c"))
    names = {"finding_ids": ["a", "b", "nothing"]}
    plan = (await ask(bare_service, ACCEPT, names, until=tomorrow(), dry_run=True)).json()
    assert (plan["matched"], plan["sample"], plan["refused"]) == (2, ["a", "b"], [])
    assert set(statuses(database_url).values()) == {"open"}
    answer = await ask(bare_service, ACCEPT, names, until=tomorrow())
    assert answer.status_code == 202, answer.text
    done = answer.json()
    assert (done["status"], done["matched"], done["done"], done["failed"]) == ("finished", 2, 2, 0)
    assert (await bare_service.client.get(answer.headers["location"])).json() == done
    assert statuses(database_url) == {"a": "accepted", "b": "accepted", "c": "open"}
    assert store.accepted() == {"a", "b"}
    page = (await bare_service.client.get("/v1/reconciliations/one/discrepancies")).json()["data"]
    assert {each["finding_id"] for each in page if each["accepted_until"]} == {"a", "b"}
    assert await select(pool, AUDITED, "accept") == [
        ("bulk.accept_finding", "ops@example", "endpoint is back", 1),
        ("finding.accept", "ops@example", "endpoint is back", 2),
    ]
    metrics = (await bare_service.client.get("/metrics")).text
    assert 'outbox_reconcile_discrepancies{kind="missing"} 1.0' in metrics


async def test_an_acceptance_holds_until_its_end_while_the_finding_is_still_seen(
    bare_service: Service, database_url: str, pool: Pool
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b"))
    await ask(bare_service, ACCEPT, {"finding_ids": ["a", "b"]}, until=tomorrow())
    store.save(make_run("two", "a"))
    assert statuses(database_url) == {"a": "accepted", "b": "resolved"}
    past: LiteralString = (
        "UPDATE outbox.reconciliation_finding SET accepted_until = clock_timestamp()"
        " RETURNING finding_id"
    )
    await select(pool, past)
    assert store.accepted() == frozenset()
    assert store.changes(["a"], True, ExpiredEvidence()).new == 1
    store.save(make_run("three", "a"))
    assert statuses(database_url) == {"a": "open", "b": "resolved"}


async def test_closed_and_not_acceptable_findings_cannot_be_accepted(
    bare_service: Service, database_url: str
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "closed"))
    unread = replace(make_finding("unread"), finding_class="NOT_READ", kind="coverage")
    expired = replace(unread, finding_id="expired", finding_class="RETENTION_GAP")
    store.save(make_run("two", findings=(unread, expired)))
    names = {"finding_ids": ["closed", "unread", "expired"]}
    plan = (await ask(bare_service, ACCEPT, names, until=tomorrow(), dry_run=True)).json()
    refused = {each["finding_id"]: each["code"] for each in plan["refused"]}
    assert refused == {"closed": "not-open", "unread": "not-acceptable"}
    done = (await ask(bare_service, ACCEPT, names, until=tomorrow())).json()
    assert (done["matched"], done["done"]) == (1, 1)
    assert statuses(database_url) == {
        "closed": "resolved",
        "unread": "open",
        "expired": "accepted",
    }


async def test_an_acceptance_needs_findings_and_a_future_time(
    bare_service: Service, subtests: pytest.Subtests
) -> None:
    names = {"finding_ids": ["a"]}
    refused: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (names, {}),
        (names, {"until": "2020-01-01T00:00:00Z"}),
        (names, {"until": "2999-01-01T00:00:00"}),
        (names, {"until": "soon"}),
        (names, {"until": tomorrow(), "rate": 5}),
        (names, {"until": tomorrow(), "accept_order": True}),
        ({"topic": "points"}, {"until": tomorrow()}),
        ({}, {"until": tomorrow()}),
    ]
    for filters, more in refused:
        with subtests.test(filters=filters, more=more):
            answer = await ask(bare_service, ACCEPT, filters, **more)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    recheck = await ask(bare_service, "recheck", {"tag": "x"}, until=tomorrow())
    assert recheck.status_code == 422


async def test_more_findings_than_max_items_are_not_accepted(
    bare_service: Service, database_url: str
) -> None:
    PostgresRunStore(database_url).save(make_run("one", "a", "b"))
    names = {"finding_ids": ["a", "b"]}
    answer = await ask(bare_service, ACCEPT, names, until=tomorrow(), max_items=1)
    assert (answer.status_code, answer.json()["code"]) == (422, "filter-too-broad")
    assert set(statuses(database_url).values()) == {"open"}


async def test_a_key_accepts_findings_of_its_own_groups_only(database_url: str, pool: Pool) -> None:
    keys = {"auth_mode": "keys", "auth_pepper": PEPPER, "encryption_keys": RING}
    async with running(settings_for(database_url, **keys)) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        await service.put_group()
        half_id, _ = parse_message_id(await service.prepared_id())
        own = replace(make_finding("own"), half_id=half_id)
        run = make_run("one", findings=(own, replace(make_finding("nobodys"), half_id=None)))
        PostgresRunStore(database_url).save(run)
        names = {"finding_ids": ["own", "nobodys"]}
        body = {**WHO, "action": ACCEPT, "filter": names, "until": tomorrow()}
        other = await token(pool, Scope.OPS_FORCE, groups=("shop",))
        hidden = (await service.client.post(BULK, json=body, headers=other)).json()
        assert hidden["done"] == 0
        billing = await token(pool, Scope.OPS_FORCE, groups=("billing",))
        shown = (await service.client.post(BULK, json=body, headers=billing)).json()
        assert shown["done"] == 1
    assert statuses(database_url) == {"own": "accepted", "nobodys": "open"}
