"""The plans of the relay's two reads: by key, one leaf, whatever the size of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.load.committed import commit_directly, register
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.relay.commit_reader import SQL
from outbox.postgres.sessions.connections import Connection, connect
from tests.integration.postgres.messages.fixtures_plans import nodes

pytestmark = pytest.mark.postgres

MESSAGES = 2000


@pytest.fixture
def backlog(database_url: str) -> Iterator[tuple[Connection, list[HalfId]]]:
    """Yield a relay's session and the ids of a few flushes in its shard."""
    with connect(database_url, "test") as session:
        session.execute("SET enable_nestloop = off")
        message = register(session, "points-earned")
        ids = [
            half_id
            for _ in range(4)
            for half_id in commit_directly(session, [message] * MESSAGES, shard=3)
        ]
        yield session, ids


def explain(session: Connection, name: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes of a statement's plan, as it was executed."""
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {SQL[name]}".encode()
    row = session.execute(statement, asked).fetchone()
    assert row is not None
    return list(nodes(row[0]))


def test_commits_are_read_from_their_leaf_by_key(
    backlog: tuple[Connection, list[HalfId]],
) -> None:
    session, ids = backlog
    plan = explain(session, "read_commits", {"shard": 3, "xid": ids[0] >> 15, "rows": 3})
    read = [
        node
        for node in plan
        if node.get("Relation Name", "").startswith("commit_log") and node["Actual Loops"]
    ]
    assert [(node["Relation Name"], node["Node Type"]) for node in read] == [
        (f"commit_log_{ids[0] >> 35}", "Index Scan")
    ]
    assert not any(node["Node Type"] == "Sort" for node in plan)


def test_contents_are_read_by_key_and_joined_without_a_nested_loop(
    backlog: tuple[Connection, list[HalfId]],
) -> None:
    session, ids = backlog
    asked = {"half_ids": ids[:MESSAGES], "bytes": 1 << 22, **bounds(ids[:MESSAGES])}
    plan = explain(session, "read_contents", asked)
    kinds = {node["Node Type"] for node in plan}
    read = {node["Relation Name"] for node in plan if "message" in node.get("Relation Name", "")}
    assert read == {f"{table}_message_{ids[0] >> 35}" for table in ("half", "op")}
    assert "Nested Loop" not in kinds
    scans = [node for node in plan if node.get("Relation Name") in read]
    assert all(node["Node Type"] != "Seq Scan" for node in scans)
    assert all(node["Actual Rows"] == MESSAGES for node in scans)
