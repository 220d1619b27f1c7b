"""Runbook `Restore into another cluster`: a dump is loaded where transaction ids start anew."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.sessions.connections import make_pool
from outbox.relay.protocol.state import Phase
from tests.fixtures_databases import migrate
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.integration.runbooks.fixtures_clusters import (
    OLDEST,
    accept_database,
    cluster,
    create_database,
    dump,
    rebase,
    restore,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

UNENDED = """
INSERT INTO outbox.half_message
    (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, value)
SELECT outbox.current_xid() << 15 | 3, 7, now() - interval '1 hour', 0, g.id, t.id, 'open'
FROM outbox.producer_group g, outbox.topic t
RETURNING half_id
"""


@pytest.fixture
def restored(
    old: RelayWorld, tmp_path: Path, servers_dir: Path, request: pytest.FixtureRequest
) -> Iterator[RelayWorld]:
    """Yield a database that was dumped, worked on, lost, and restored into a new cluster."""
    old.commit_values(b"published")
    drain(old.relay())
    old.commit_values(b"pending")
    old.connection.execute(UNENDED)
    dump(old.database_url, tmp_path / "outbox.dump")
    old.commit_values(b"after the backup")
    drain(old.relay_again())
    old.relay_again().close()
    programs = getattr(request, "param", OLDEST)
    with cluster(servers_dir / "restored", programs) as server:
        url = create_database(server)
        restore(tmp_path / "outbox.dump", url)
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            made = replace(old, database_url=url, connection=connection, opened=[])
            yield made
            for relay in made.opened:
                relay.close()


async def swept(world: RelayWorld) -> int:
    """Sweep what is more than a second old; return how many half messages wait for a check."""
    young = "SELECT greatest(0, 1.1 - extract(epoch FROM clock_timestamp() - max(prepared_at)))"
    await asyncio.sleep(float(world.one(f"{young} FROM outbox.half_message")))
    async with make_pool(world.database_url, "test", pool_max=2) as pool:
        while await PostgresSweep(pool).sweep(1000):
            pass
    return int(world.one("SELECT count(*) FROM outbox.check_queue"))


RIGHTS = """
SELECT kind, name, grantee, privilege_type FROM (
    SELECT 'relation' AS kind, relname::text AS name,
        coalesce(relacl, acldefault('r', relowner)) AS acl
    FROM pg_class WHERE relnamespace = 'outbox'::regnamespace AND relkind IN ('r', 'p', 'v')
    UNION ALL
    SELECT 'column', relname || '.' || attname, attacl
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE attacl IS NOT NULL AND relnamespace = 'outbox'::regnamespace
    UNION ALL
    SELECT 'function', proname || '(' || pg_get_function_identity_arguments(oid) || ')',
        coalesce(proacl, acldefault('f', proowner))
    FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace
    UNION ALL
    SELECT 'schema', nspname, coalesce(nspacl, acldefault('n', nspowner))
    FROM pg_namespace WHERE nspname = 'outbox'
) AS objects CROSS JOIN LATERAL (
    SELECT coalesce(r.rolname, 'public') AS grantee, a.privilege_type
    FROM aclexplode(acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
) AS granted
WHERE grantee <> 'outbox'
ORDER BY 1, 2, 3, 4
"""


@pytest.mark.parametrize(
    "restored",
    [OLDEST, None],
    ids=["oldest", "embedded"],
    indirect=True,
)
async def test_every_commit_reaches_kafka_once_and_every_open_half_is_asked_about(
    restored: RelayWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = rebase(restored, monkeypatch, capsys)
    assert moved["now"] > moved["was"]
    accept_database(restored)
    new = [b"new %d" % n for n in range(40)]
    for value in new:
        restored.commit_values(value)
        restored.connection.execute(UNENDED)
    assert drain(restored.relay_again()).phase is Phase.RUN
    assert restored.values(43) == [b"published", b"pending", b"after the backup", *new]
    assert await swept(restored) == 41
    assert restored.one("SELECT count(leaf) FROM outbox.missing_leaf") == 0


def test_migrate_up_creates_the_roles_and_every_right_that_the_dump_left_out(
    old: RelayWorld, restored: RelayWorld
) -> None:
    had = old.connection.execute(RIGHTS).fetchall()
    assert ("schema", "outbox", "outbox_reconcile", "USAGE") in had
    has = restored.connection.execute(RIGHTS).fetchall()
    assert sorted(set(had) ^ set(has)) == []


def test_a_role_that_publishes_in_sql_gets_its_rights_from_migrate_up(
    restored: RelayWorld,
) -> None:
    restored.message()
    restored.connection.execute("CREATE ROLE shop")
    restored.connection.execute(
        "INSERT INTO outbox.plain_publisher VALUES ('shop', 1), ('gone', 1)"
    )
    migrate(restored.database_url)
    granted = "SELECT has_function_privilege(%s, p.oid, 'EXECUTE') FROM pg_proc p"
    granted += " WHERE p.pronamespace = 'outbox'::regnamespace AND p.proname = 'publish'"
    assert restored.one(granted, "shop") is True
    assert restored.one(granted, "outbox_reconcile") is False
