"""PostgreSQL clusters of a test's own: aged, dumped and restored into another cluster."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from devservers.postgres import EmbeddedPostgres
from outbox.relay.halt_resolution import HaltResolution
from outbox.relay.protocol.state import HaltReason
from tests.fixtures_databases import with_database
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain

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


def rebase(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, int]:
    """Point the commands at the world's database and rebase it; return what the command shows."""
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    command = ["-o", "json", "--yes", "installation", "rebase", "--reason", "a runbook"]
    assert run(command) == ExitCode.OK
    shown: dict[str, int] = json.loads(capsys.readouterr().out)
    return shown


def accept_database(world: RelayWorld) -> None:
    """Let the shard halt in the other database, and decide that this is the one to go on with."""
    assert drain(world.relay()).halt is HaltReason.DATABASE_CHANGED
    world.relay_again().close()
    world.resolve(HaltResolution.ACCEPT)
