"""Runbook `Upgrade PostgreSQL`: pg_upgrade keeps transaction ids and changes the cluster's id;
logical replication brings rows into a cluster with ids and counters of its own.

A dump that is restored into a newer version is in `test_restore.py`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from benchmarks.load.committed import register
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from devservers.unprivileged import unprivileged_user
from outbox.messages.message_id import SHARDS
from outbox.relay.protocol.state import Phase
from tests.fixtures_databases import migrate
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, until
from tests.integration.runbooks.fixtures_clusters import (
    OLDEST,
    accept_database,
    age,
    cluster,
    create_database,
    dump,
    rebase,
    restore,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

PUBLISH = """
CREATE PUBLICATION outbox_move FOR TABLES IN SCHEMA outbox WITH (publish_via_partition_root = true)
"""
UNREADY = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'"
ARRIVED = "SELECT bool_and(replay_lsn >= %s) FROM pg_stat_replication"


def upgrade(old: EmbeddedPostgres, new: EmbeddedPostgres) -> None:
    """Move the databases of a cluster into an empty one; both are stopped."""
    password = urlsplit(old.database_url).password or ""
    with psycopg.connect(new.database_url, autocommit=True) as session:
        session.execute(f"ALTER ROLE outbox PASSWORD '{password}'".encode())
    (new.home / "password").write_text(password)
    old.stop()
    new.stop()
    user = unprivileged_user()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        if user is not None:
            user.take(Path(folder))
        folders = [f"--old-datadir={old.home / 'data'}", f"--new-datadir={new.home / 'data'}"]
        programs = [f"--old-bindir={OLDEST}", f"--new-bindir={OLDEST}", "--username=outbox"]
        done = subprocess.run(
            [str(OLDEST / "pg_upgrade"), *folders, *programs, f"--socketdir={folder}"],
            cwd=folder,
            env={"PATH": os.defpath, "PGPASSWORD": password, "LC_ALL": "C"},
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=[] if user else None,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    new.start()


def test_after_pg_upgrade_every_commit_reaches_kafka_once_without_a_rebase(
    servers_dir: Path,
    kafka_broker: EmbeddedKafka,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not (OLDEST / "pg_upgrade").is_file():
        pytest.skip(f"no pg_upgrade in {OLDEST}")
    servers = kafka_broker.bootstrap_servers
    topics = make_topic(servers, partitions=1), make_topic(servers, partitions=SHARDS)
    with (
        cluster(servers_dir / "before") as old,
        cluster(servers_dir / "after") as new,
    ):
        age(old, 20_000)
        url = create_database(old)
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            world = RelayWorld(url, servers, *topics, connection)
            world.commit_values(b"published")
            drain(world.relay())
            world.commit_values(b"pending")
            world.relay_again().close()
        upgrade(old, new)
        url = new.url_of("outbox")
        with psycopg.connect(url, autocommit=True) as connection:
            world = replace(world, database_url=url, connection=connection, opened=[])
            moved = rebase(world, monkeypatch, capsys)
            assert moved["now"] == moved["was"]
            accept_database(world)
            world.commit_values(b"new")
            assert drain(world.relay_again()).phase is Phase.RUN
            world.relay_again().close()
            assert world.values(3) == [b"published", b"pending", b"new"]


def replicate(old_url: str, new_url: str, file: Path) -> None:
    """Copy the tables into an empty database, and every change from then on."""
    dump(old_url, file, "--schema-only")
    restore(file, new_url)
    with psycopg.connect(old_url, autocommit=True) as session:
        session.execute(PUBLISH)
    with psycopg.connect(new_url, autocommit=True) as session:
        source = urlsplit(old_url)
        keys = f"host={source.hostname} port={source.port} dbname={source.path.lstrip('/')}"
        login = f"user={source.username} password={source.password}"
        subscribe = f"CREATE SUBSCRIPTION outbox_move CONNECTION '{keys} {login}'"
        session.execute(f"{subscribe} PUBLICATION outbox_move".encode())


def finish(old_url: str, new_url: str) -> None:
    """Wait until the new database has everything, and end the replication."""
    with (
        psycopg.connect(old_url, autocommit=True) as old,
        psycopg.connect(new_url, autocommit=True) as new,
    ):
        until(lambda: new.execute(UNREADY).fetchone() == (0,))
        end = old.execute("SELECT pg_current_wal_lsn()").fetchone()
        until(lambda: old.execute(ARRIVED, end).fetchone() == (True,))
        new.execute("DROP SUBSCRIPTION outbox_move")


def test_after_logical_replication_every_commit_reaches_kafka_once_and_new_names_are_stored(
    servers_dir: Path,
    tmp_path: Path,
    kafka_broker: EmbeddedKafka,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    servers = kafka_broker.bootstrap_servers
    topics = make_topic(servers, partitions=1), make_topic(servers, partitions=SHARDS)
    with (
        cluster(servers_dir / "publisher", settings={"wal_level": "logical"}) as old,
        cluster(servers_dir / "subscriber", None) as new,
    ):
        age(old, 20_000)
        url, new_url = create_database(old), create_database(new)
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            world = RelayWorld(url, servers, *topics, connection)
            world.commit_values(b"published")
            drain(world.relay())
            replicate(url, new_url, tmp_path / "schema.dump")
            world.commit_values(b"published meanwhile")
            drain(world.relay_again())
            world.commit_values(b"pending")
            world.relay_again().close()
            finish(url, new_url)
        migrate(new_url)
        with psycopg.connect(new_url, autocommit=True) as connection:
            world = replace(world, database_url=new_url, connection=connection, opened=[])
            moved = rebase(world, monkeypatch, capsys)
            assert moved["now"] > moved["was"]
            accept_database(world)
            register(connection, "a-new-topic", "a-new-group")
            world.commit_values(b"new")
            assert drain(world.relay_again()).phase is Phase.RUN
            world.relay_again().close()
            expected = [b"published", b"published meanwhile", b"pending", b"new"]
            assert world.values(4) == expected
