"""What the doctor reads of a PostgreSQL that has other users too."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.operators.operator_view import OperatorView
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_databases import as_role
from tests.fixtures_messages import make_group, make_message, store_group, store_topic
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.postgres


async def test_the_session_whose_transaction_keeps_messages_waiting_is_named(
    database_url: str, pool: Pool
) -> None:
    """Other databases of the server may have a transaction open too, for a moment."""
    group = await store_group(pool, make_group())
    message = make_message(group, topic_id=await store_topic(pool, "orders"))
    with (
        psycopg.connect(
            as_role(database_url, "outbox_publish"), application_name="report"
        ) as stranger,
        OperatorView(as_role(database_url, "outbox_api")) as view,
    ):
        stranger.execute("SELECT pg_current_xact_id()")
        pid = stranger.info.backend_pid
        await PostgresHalfStore(pool).prepare([message])

        def holders() -> list[dict[str, Any]]:
            return view.rows("watermark_holder")

        def named() -> dict[str, Any] | None:
            found = holders()
            return found[0] if found and found[0]["pid"] == pid else None

        holder = wait_for(named)
        assert holder is not None
        assert holder["role"] == "outbox_publish"
        assert holder["program"] == "report"
        assert holder["database"] == urlsplit(database_url).path[1:]
        assert holder["seconds"] >= 0
        stranger.rollback()
        assert wait_for(lambda: not holders() or holders()[0]["pid"] != pid)
