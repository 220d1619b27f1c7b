"""The gauges from the tables: what one statement cannot read takes no other with it."""

from __future__ import annotations

import re
from typing import LiteralString

import pytest
from structlog.testing import capture_logs

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres


LOCK = "BEGIN; LOCK TABLE outbox.plain_message IN ACCESS EXCLUSIVE MODE"
REVOKE = "REVOKE SELECT ON outbox.plain_message FROM outbox_api"


@pytest.mark.parametrize(
    ("trouble", "words"), [(LOCK, "statement timeout"), (REVOKE, "permission denied")]
)
async def test_a_statement_that_fails_leaves_the_other_gauges_and_names_its_cause(
    service: Service, pool: Pool, trouble: LiteralString, words: str
) -> None:
    async with pool.connection() as stranger:
        await stranger.execute(trouble)
        with capture_logs() as lines:
            metrics = (await service.client.get("/metrics")).text
        await stranger.rollback()
    unread = dict(re.findall(r'outbox_table_gauges_unread{part="(\w+)"} (\S+)', metrics))
    assert {part for part, value in unread.items() if value == "1.0"} == {"unfinished"}
    assert "outbox_checker_heartbeat_timestamp_seconds{" in metrics
    (line,) = [line for line in lines if line["event"] == "table_gauges_unread"]
    assert line["part"] == "unfinished"
    assert words in line["error"]
