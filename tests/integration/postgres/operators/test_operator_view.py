"""What operators see of the sessions of PostgreSQL, as the API's role."""

from __future__ import annotations

from typing import Any

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
        psycopg.connect(as_role(database_url, "outbox_publish")) as stranger,
        OperatorView(as_role(database_url, "outbox_api")) as view,
    ):
        stranger.execute("SELECT pg_current_xact_id()")
        pid = stranger.info.backend_pid
        await PostgresHalfStore(pool).prepare([message])

        def named() -> dict[str, Any] | None:
            found = view.watermark_holder()
            return found if found and found["pid"] == pid else None

        holder = wait_for(named)
        assert holder is not None
        assert holder["role"] == "outbox_publish"
        assert holder["seconds"] >= 0
        stranger.rollback()
        assert wait_for(lambda: (view.watermark_holder() or {"pid": 0})["pid"] != pid)
