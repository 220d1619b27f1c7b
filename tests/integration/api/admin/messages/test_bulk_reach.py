"""An action on many messages acts on all that match and on nothing else, and names what failed."""

from __future__ import annotations

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.admin.fixtures_bulk_actions import ask, finished
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import HALVES, Service

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
    for action in ("release_held", "drop_held"):
        result = await finished(service, await ask(service, action, {"tag": "mine"}, max_items=2))
        assert (result["matched"], result["done"], result["failed"]) == (2, 2, 0)
    again = await ask(service, "drop_held", {"tag": "mine"}, dry_run=True)
    assert again.json()["matched"] == 0


async def test_an_action_on_named_messages_takes_these_and_no_others(
    service: Service, pool: Pool
) -> None:
    parked = await service.prepared_id()
    await select(pool, PARK)
    named, other, decided, held, committed = [await service.prepared_id() for _ in range(5)]
    await service.end(decided, "ROLLBACK")
    for message_id in (held, committed):
        await service.end(message_id, "COMMIT")
    await hold(pool, held)
    guessed = other[:-4] + ("0000" if other[-4:] != "0000" else "1111")
    asked = {"message_ids": [parked, named, named, decided, held, committed, guessed, "0" * 36]}
    release = await ask(service, "release_held", asked, dry_run=True)
    assert (release.json()["matched"], release.json()["sample"]) == (1, [held])
    dry = await ask(service, "force_end", asked, decision="ROLLBACK", dry_run=True)
    assert (dry.json()["matched"], set(dry.json()["sample"])) == (2, {parked, named})
    result = await finished(service, await ask(service, "force_end", asked, decision="ROLLBACK"))
    assert (result["matched"], result["done"], result["failed"]) == (2, 2, 0)
    left = [
        (await service.client.get(f"{HALVES}/{each}")).json()["state"] for each in (other, held)
    ]
    assert left == ["PREPARED", "COMMITTED"]
