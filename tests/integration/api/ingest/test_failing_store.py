"""PostgreSQL fails within a step: nothing is decided, nothing is lost, a repeat succeeds."""

from __future__ import annotations

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.fixtures_full_disk import DISK_FULL, SPACE_AGAIN
from tests.integration.api.fixtures_rows import select, stored
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres


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


async def test_a_right_that_was_taken_away_is_an_outage_and_no_defect(
    service: Service, pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A producer repeats its request, and the operator reads which right is missing."""
    message_id = await service.prepared_id()
    await select(pool, "REVOKE INSERT ON outbox.op_message, outbox.half_message FROM outbox_api")
    answers = [await service.end(message_id, "COMMIT") for _ in range(3)]
    answers.append(await service.prepare())
    assert {(each.status_code, each.json()["code"]) for each in answers} == {
        (503, "database-unavailable")
    }
    assert all("retry-after" in each.headers for each in answers)
    logged = "".join(capsys.readouterr())
    assert "permission denied for table op_message" in logged
    assert "Traceback" not in logged
    await select(pool, "GRANT INSERT ON outbox.op_message, outbox.half_message TO outbox_api")
    assert (await service.end(message_id, "COMMIT")).status_code == 200
