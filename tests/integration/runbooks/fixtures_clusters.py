"""PostgreSQL clusters of a test's own: aged, dumped and restored into another cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from cli.stores.shard_resolution import ShardResolution
from devservers.postgres import EmbeddedPostgres
from outbox.operators.message_view import OperatorAction
from outbox.relay.halt_resolution import HaltResolution
from outbox.settings.environment import load_settings
from tests.fixtures_databases import with_database
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld

RELEASES = Path("/usr/lib/postgresql")
OLDEST = RELEASES / "15/bin"
AGE = """
DO $$ BEGIN
    FOR i IN 1..{transactions} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;
END $$
"""
DATABASE = "outbox"


@contextmanager
def cluster(
    home: Path,
    binaries: Path | None = OLDEST,
    settings: Mapping[str, str] | None = None,
) -> Iterator[EmbeddedPostgres]:
    """Run a new cluster for the block; without binaries, of the embedded version."""
    server = EmbeddedPostgres(home, binaries=binaries, settings=settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.erase()


def age(server: EmbeddedPostgres, transactions: int) -> None:
    """Use up transaction ids of a cluster."""
    with psycopg.connect(server.database_url, autocommit=True) as connection:
        connection.execute(AGE.format(transactions=transactions).encode())


def create_database(server: EmbeddedPostgres) -> str:
    """Create an empty database; return its URL."""
    with psycopg.connect(server.database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    return with_database(server.database_url, DATABASE)


def dump(database_url: str, file: Path, *options: str) -> None:
    """Dump a database as the runbook says; its own cluster must not be newer than 15."""
    tool("pg_dump", database_url, "--format=custom", f"--file={file}", *options)


def restore(file: Path, database_url: str) -> None:
    """Restore a dump into an empty database as the runbook says."""
    name = urlsplit(database_url).path.lstrip("/")
    options = ("--no-owner", "--no-privileges", "--exit-on-error", f"--dbname={name}")
    tool("pg_restore", database_url, *options, str(file))


def tool(name: str, database_url: str, *arguments: str) -> None:
    """Run one of PostgreSQL's client programs on a server."""
    parts = urlsplit(database_url)
    environment = {
        "PATH": os.defpath,
        "PGHOST": str(parts.hostname),
        "PGPORT": str(parts.port),
        "PGUSER": str(parts.username),
        "PGPASSWORD": str(parts.password),
        "PGDATABASE": parts.path.lstrip("/"),
    }
    done = subprocess.run(
        [str(OLDEST / name), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def resolve_by_accepting(world: RelayWorld) -> None:
    """Decide that the database at hand is the one to continue with."""
    settings = load_settings(world.environment)
    action = OperatorAction(operator="tester", reason="a runbook", key_id=None)
    ShardResolution(settings, SHARD, world.progress_topic).resolve(HaltResolution.ACCEPT, action)
