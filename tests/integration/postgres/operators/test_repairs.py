"""The relay publishes a repair that an operator ordered: the same record, marked, once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.messages.manifest import PUBLISHED, Kind
from outbox.messages.message_id import HalfId
from outbox.operators.bulk_actions import BulkKind, BulkOrder
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.bulk_actions import PostgresBulkActions
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    drain_until_free,
    manifests,
)
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_finding, make_run

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

ACTION = OperatorAction(operator="ann", reason="unclean election", key_id=None)


def lose(world: RelayWorld, run_id: str, *half_ids: HalfId) -> None:
    """Save a run that found these messages lost; their finding ids are their half ids."""
    findings = [replace(make_finding(str(each)), half_id=each) for each in half_ids]
    PostgresRunStore(world.database_url).save(make_run(run_id, findings=tuple(findings)))


def repair(world: RelayWorld, half_id: HalfId) -> str:
    """Order the repair of this message; return the action's id."""
    order = BulkOrder(
        kind=BulkKind.REPUBLISH,
        finding_ids=[str(half_id)],
        groups=None,
        asked={},
        action=ACTION,
        max_items=1,
    )

    async def ordered(pool: Pool) -> str:
        actions = PostgresBulkActions(pool)
        begun = await actions.begin(order)
        assert begun is not None
        assert await actions.advance()
        return str(begun.id)

    return world.ask(ordered)


def test_a_lost_message_is_published_again_unaltered_and_has_the_number_of_the_action(
    world: RelayWorld,
) -> None:
    lost, kept = world.commit(
        world.message(key=b"a", value=b"1", headers=(("tenant", b"north"),), content_type="t/x"),
        world.message(key=b"b", value=b"2"),
    )
    relay = world.relay()
    drain(relay)
    relay.close()
    world.connection.execute(
        "INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)"
        " SELECT half_id, nonce, %s, 0 FROM outbox.half_message WHERE half_id = %s",
        (SHARD, lost),
    )
    lose(world, "run", lost)
    number = repair(world, lost)
    drain_until_free(world)
    first, _, again = world.records(3)
    assert (again.topic, again.key, again.value) == (first.topic, first.key, first.value)
    headers = dict(again.headers)
    assert headers.pop("outbox_redriven") == number.encode()
    assert headers == {**dict(first.headers), "outbox_batch": headers["outbox_batch"]}
    last = manifests(world, 2)[-1]
    assert (last.kind, [entry.status for entry in last.entries]) == (Kind.REPAIR, [PUBLISHED])
    PostgresRunStore(world.database_url).save(make_run("next"))
    status = "SELECT status FROM outbox.reconciliation_finding WHERE half_id = %s"
    assert world.one(status, lost) == "fixed"
    assert kept != lost
    drain(world.relay())
    assert len(world.records(3)) == 3
