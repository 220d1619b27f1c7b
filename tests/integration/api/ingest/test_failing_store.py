"""PostgreSQL fails within a step: nothing is decided, nothing is lost, a repeat succeeds."""

from __future__ import annotations

import pytest

from api.http import problems
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_full_disk import DISK_FULL, SPACE_AGAIN
from tests.integration.api.fixtures_rows import select, stored
from tests.integration.api.fixtures_service import HALVES, Service

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


async def test_an_internal_error_is_a_problem_document(service: Service, pool: Pool) -> None:
    message_id = await service.prepared_id()
    await service.end(message_id, "COMMIT")
    await select(pool, "ALTER TABLE outbox.op_message DROP CONSTRAINT ck_op_message_decided_by")
    await select(pool, "UPDATE outbox.op_message SET decided_by = 99")
    answer = await service.client.get(f"{HALVES}/{message_id}")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_right_that_was_taken_away_is_an_outage_and_no_defect(
    service: Service, pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A producer repeats its request, and the operator reads once which right is missing."""
    problems._log_refusal.cache_clear()
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
    for event in ("database_refused", "dependency_lost"):
        said = [line for line in logged.splitlines() if event in line]
        assert sum("permission denied for table op_message" in line for line in said) == 1
    await select(pool, "GRANT INSERT ON outbox.op_message, outbox.half_message TO outbox_api")
    assert (await service.end(message_id, "COMMIT")).status_code == 200
