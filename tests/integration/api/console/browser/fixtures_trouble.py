"""An installation with some trouble, so that every page of the console has something to show."""

from __future__ import annotations

from typing import Final

import psycopg

from tests.integration.api.console.browser.fixtures_desk import Desk
from tests.integration.api.console.fixtures_overtaken_time import CHECKED
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import HALVES

GROUPS: Final = ("billing", "shipping", "loyalty")


async def make_trouble(desk: Desk) -> str:
    """Make messages in each state and what operators did; return the message to show."""
    for group in GROUPS[1:]:
        await desk.listener.put_group(group)
    for number in range(7701, 7704):
        await desk.prepare(producer_group="shipping", transaction_id=f"parcel-{number}")
    await select(desk.pool, CHECKED, "timeout", None)
    for number in range(7704, 7709):
        await desk.prepare(producer_group="billing", transaction_id=f"invoice-{number}")
    await select(desk.pool, CHECKED, "http_error", 500)
    await select(desk.pool, PARK)
    held = await desk.prepare(transaction_id="invoice-7720", key="cust-58")
    await desk.listener.client.post(f"{HALVES}/{held}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, held)
    for number in range(7721, 7727):
        committed = await desk.prepare(transaction_id=f"invoice-{number}", tags=["shown"])
        if number % 2:
            body = {"decision": "COMMIT"}
            await desk.listener.client.post(f"{HALVES}/{committed}/end", json=body)
    shown = await desk.prepare(transaction_id="invoice-7731", key="cust-58", tags=["shown"])
    await select(desk.pool, CHECKED, "unknown", 200)
    who = {"operator": "Ada", "reason": "the order service is back"}
    for path in (f"{HALVES}/{shown}/recheck", "/v1/producer-groups/loyalty/pause"):
        body = who if path.endswith("recheck") else {"reason": "moved to another cluster"}
        answer = await desk.listener.client.post(path, json=body)
        assert answer.status_code < 300, answer.text
    return shown


def let_tasks_beat(database_url: str) -> None:
    """Write the heartbeats of a checker, and the halt of a shard."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for task in ("relay", "check", "sweep", "retire"):
            connection.execute(
                "INSERT INTO outbox.progress (name, position, position_n, updated_at)"
                " VALUES (%s, 0, 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING",
                [f"heartbeat:{task}"],
            )
        connection.execute(
            "INSERT INTO outbox.progress (name, position, position_n, halt_reason)"
            " VALUES ('relay:3', 0, 0, 'progress_lost')"
        )
