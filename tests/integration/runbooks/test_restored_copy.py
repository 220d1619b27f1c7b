"""Runbook `Restore into another cluster`: a dump from the middle of a copy of default leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from checker.maintenance.partition_maintenance import EVERY_SECONDS, PartitionMaintenance
from outbox.operators.message_view import OperatorAction
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.operators.installation_admin import rebase_installation
from outbox.postgres.sessions.connections import make_pool
from outbox.telemetry.metrics import Metrics
from tests.fixtures_databases import as_role, migrate
from tests.integration.checker.maintenance.fixtures_many_rows import (
    FILL,
    LEFT_OVER,
    MANY,
    NEXT_IDS,
    PER_XID,
    STORED,
    WITHOUT_LEAF,
)
from tests.integration.checker.relay.fixtures_relay import RelayWorld
from tests.integration.runbooks.fixtures_clusters import cluster, create_database, dump, restore

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

STEPS = (pytest.param("mirror", marks=pytest.mark.deep), "copy", "replace", "end")
ROUNDS = 100


@pytest.mark.parametrize("step", STEPS)
async def test_every_row_is_found_once_in_its_leaf(
    old: RelayWorld, tmp_path: Path, servers_dir: Path, step: str
) -> None:
    filled = fill(old)
    go_to(old.connection, step)
    dump(old.database_url, tmp_path / "outbox.dump")
    with cluster(servers_dir / "restored") as server:
        url = create_database(server)
        restore(tmp_path / "outbox.dump", url)
        migrate(url)
        action = OperatorAction(operator="test", reason="restored", key_id=None)
        rebased = rebase_installation(url, action)
        assert rebased.now > rebased.was
        await finish(url)
        with psycopg.connect(url) as session:
            assert session.execute(STORED, filled).fetchall() == [(MANY, MANY, MANY)]
            assert session.execute(LEFT_OVER).fetchall() == []
            missing = session.execute("SELECT count(leaf) FROM outbox.missing_leaf")
            assert missing.fetchall() == [(0,)]


def fill(old: RelayWorld) -> dict[str, int]:
    """Store committed halves that have no leaf; return where their ids begin and end."""
    old.commit_values(b"known")
    old.connection.execute(WITHOUT_LEAF)
    first = old.one("SELECT outbox.watermark() << 15")
    group = old.one("SELECT max(id) FROM outbox.producer_group")
    with psycopg.connect(old.database_url) as session, psycopg.ClientCursor(session) as cursor:
        cursor.execute(FILL, {"first": first, "rows": MANY, "group": group})
    old.connection.execute(NEXT_IDS, {"xids": MANY // PER_XID})
    return {"first": first, "end": first + (MANY // PER_XID << 15)}


def go_to(session: psycopg.Connection[Any], step: str) -> None:
    """Do step after step, each as small as possible, until the given one is next."""
    for _ in range(ROUNDS):
        found = session.execute("SELECT outbox.leaf_move_step()").fetchone()
        if found == (step,):
            return
        session.execute("SELECT outbox.move_defaults(0)")
    raise AssertionError(found)


async def finish(url: str) -> None:
    """Run the checker's task of the leaves with its role until no leaf is missing."""
    async with make_pool(as_role(url, "outbox_checker"), "test", pool_max=2) as pool:
        task = PartitionMaintenance(PostgresPartitions(pool), Metrics())
        for _ in range(ROUNDS):
            if await task.step() == EVERY_SECONDS:
                return
    raise AssertionError
