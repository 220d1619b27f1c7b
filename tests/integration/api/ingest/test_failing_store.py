"""PostgreSQL fails within a step: nothing is decided, nothing is lost, a repeat succeeds."""

from __future__ import annotations

import asyncio
from typing import LiteralString

import pytest

from api.http import problems
from api.ingest.batcher import FlushLimits
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_new_rows import NEW_HALVES
from tests.integration.api.fixtures_rows import PARK, select, stored
from tests.integration.api.fixtures_service import HALVES, Service, prepare_body

pytestmark = pytest.mark.postgres

DISK_FULL: LiteralString = """
CREATE FUNCTION outbox.disk_full() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER disk_full BEFORE INSERT ON {table} EXECUTE FUNCTION outbox.disk_full()
"""
SPACE_AGAIN: LiteralString = "DROP FUNCTION outbox.disk_full() CASCADE"
NEW_OPS: LiteralString = "FROM outbox.op_message WHERE xid >= outbox.watermark() >> 20 << 20"
WHO = {"operator": "ops@example", "reason": "endpoint is back"}


async def test_a10_an_end_whose_op_cannot_be_written_leaves_the_half_open(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id()
    await select(pool, DISK_FULL.format(table="outbox.op_message"))
    failed = await service.end(message_id, "COMMIT")
    assert (failed.status_code, failed.json()["code"]) == (503, "database-unavailable")
    assert "retry-after" in failed.headers
    assert await stored(pool) == (1, 0, 0, 0)
    await select(pool, SPACE_AGAIN)
    again = await service.end(message_id, "COMMIT")
    assert (again.status_code, again.json()["already_ended"]) == (200, False)
    assert await stored(pool) == (1, 1, 0, 1)


async def test_a10_more_ends_than_one_flush_holds_are_all_decided(
    service: Service, pool: Pool
) -> None:
    items = [prepare_body(value=str(n)) for n in range(1000)]
    ends: list[list[dict[str, str]]] = []
    for _ in range(3):
        answer = await service.client.post(f"{HALVES}/batch", json={"items": items})
        ids = [item["result"]["message_id"] for item in answer.json()["items"]]
        ends.append([{"message_id": i, "decision": "COMMIT"} for i in ids])
    posts = [service.client.post(f"{HALVES}/end-batch", json={"items": e}) for e in ends]
    answers = await asyncio.gather(*posts)
    statuses = [item["status"] for answer in answers for item in answer.json()["items"]]
    assert statuses == [200] * 3000
    assert (await stored(pool))[:2] == (3000, 3000)
    flushes = await select(pool, f"SELECT count(*) {NEW_OPS} GROUP BY xid")
    assert len(flushes) >= 2
    assert max(ended for (ended,) in flushes) <= FlushLimits().rows


async def test_a17_a_resume_that_fails_leaves_the_message_parked(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id()
    await select(pool, PARK)
    await select(pool, DISK_FULL.format(table="outbox.check_queue"))
    failed = await service.client.post(f"{HALVES}/{message_id}/recheck", json=WHO)
    assert failed.status_code == 503
    assert (await service.client.get(f"{HALVES}/{message_id}")).json()["state"] == "PARKED"
    await select(pool, SPACE_AGAIN)
    for _ in range(2):
        resumed = await service.client.post(f"{HALVES}/{message_id}/recheck", json=WHO)
        assert (resumed.status_code, resumed.json()["state"]) == (202, "PREPARED")
    assert (await service.client.get(f"{HALVES}/{message_id}")).json()["state"] == "PREPARED"


async def test_an_internal_error_is_a_problem_document(service: Service, pool: Pool) -> None:
    message_id = await service.prepared_id()
    await service.end(message_id, "COMMIT")
    await select(pool, "ALTER TABLE outbox.op_message DROP CONSTRAINT ck_op_message_decided_by")
    await select(pool, "UPDATE outbox.op_message SET decided_by = 99")
    answer = await service.client.get(f"{HALVES}/{message_id}")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_page_shows_every_message_at_one_instant(service: Service, pool: Pool) -> None:
    """Messages that are parked while pages are read appear on a page completely or not at all."""
    own = {await service.prepared_id(value=str(n)) for n in range(40)}
    parking = asyncio.create_task(park_one_by_one(pool))
    states: set[str] = set()
    while not parking.done() or "PREPARED" in states:
        page = await service.client.get(HALVES, params={"limit": 500})
        assert page.status_code == 200, page.text
        states = {each["state"] for each in page.json()["data"] if each["message_id"] in own}
        for message in page.json()["data"]:
            assert (message["state"] == "PARKED") == (message["parked_reason"] is not None)
    assert states == {"PARKED"}


async def park_one_by_one(pool: Pool) -> None:
    for (half_id,) in await select(
        pool, f"SELECT half_id FROM outbox.half_message WHERE {NEW_HALVES}"
    ):
        await select(pool, PARK + " AND half_id = %s", half_id)


async def test_a_right_that_was_taken_away_is_an_outage_and_no_defect(
    service: Service,
    pool: Pool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A producer repeats its request, and the operator reads once which right is missing."""
    monkeypatch.setattr(problems, "_refusals", set())
    message_id = await service.prepared_id()
    await select(pool, "REVOKE INSERT ON outbox.op_message, outbox.half_message FROM outbox_api")
    answers = [await service.end(message_id, "COMMIT") for _ in range(3)]
    answers.append(await service.prepare())
    assert {(each.status_code, each.json()["code"]) for each in answers} == {
        (503, "database-unavailable")
    }
    assert all("retry-after" in each.headers for each in answers)
    logged = "".join(capsys.readouterr())
    assert "Traceback" not in logged
    assert logged.count("permission denied for table op_message") == 1
    await select(pool, "GRANT INSERT ON outbox.op_message, outbox.half_message TO outbox_api")
    assert (await service.end(message_id, "COMMIT")).status_code == 200
