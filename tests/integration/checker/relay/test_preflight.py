"""Unsafe servers: the doctor names the setting, the relay does not start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from devservers.errors import ServerFailed
from devservers.kafka import EmbeddedKafka
from devservers.loopback import LOOPBACK, free_ports
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.progress_topic import PROGRESS_TOPIC, ensure_progress_topic
from outbox.postgres.relay.commit_log import LOCK_SPACE
from tests.e2e.fixtures_command_here import Command
from tests.fixtures_databases import migrate
from tests.fixtures_separate_broker import separate_broker
from tests.fixtures_waiting import wait_for
from tests.integration.checker.fixtures_checker_process import CheckerProcess, start_checker
from tests.integration.checker.fixtures_pooler import pooled

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

USAGE = 2
ALL_SHARDS = 16
Doctor = Callable[[str, str], Awaitable[tuple[int, set[str]]]]
SHARD_LOCKS = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    f" AND classid = {LOCK_SPACE} AND objsubid = 2"
)
"""Tasks of the checker have advisory locks of their own for moments."""


def starts(server: EmbeddedPostgres) -> bool:
    """Try; child processes of a killed server may still hold its shared memory for a moment."""
    try:
        server.start()
    except ServerFailed:
        return False
    return True


@contextmanager
def postgres_with(
    folder: Path, settings: Mapping[str, str], port: int, *, erase: bool = True
) -> Iterator[str]:
    """Run a separate, migrated PostgreSQL for this test.

    It is young on an aged installation too: what is refused is the server, before any row is read.
    """
    server = EmbeddedPostgres(folder, port=port, settings=settings)
    wait_for(lambda: starts(server))
    try:
        migrate(server.database_url)
        yield server.database_url
    finally:
        server.kill()
        if erase:
            server.erase()


@contextmanager
def kafka_with(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Run a separate broker for this test, with the progress topic."""
    with separate_broker(folder, progress_topic=True, settings=settings) as broker:
        yield broker.bootstrap_servers


def set_cleanup(servers: str, policy: str) -> None:
    """Change how the progress topic is cleaned."""
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, PROGRESS_TOPIC, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(timeout=60)


def shard_locks(connection: psycopg.Connection[Any]) -> int:
    """Return how many shards a relay holds."""
    row = connection.execute(SHARD_LOCKS).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Return a function that returns its exit code and the checks that failed."""
    command = Command(capsys)

    def ask(database_url: str, servers: str) -> tuple[int, set[str]]:
        ended = command(
            *("-o", "json", "doctor"),
            OUTBOX_DATABASE_URL=database_url,
            OUTBOX_KAFKA_BOOTSTRAP_SERVERS=servers,
            OUTBOX_API_URL=f"http://{LOOPBACK}:{free_ports(1)[0]}",
        )
        failed = {each["check"] for each in ended.json() if each["verdict"] == "failed"}
        return ended.code, failed

    return lambda database_url, servers: asyncio.to_thread(ask, database_url, servers)


async def relay(database_url: str, servers: str) -> CheckerProcess:
    return await start_checker(
        "--only", "relay", database_url=database_url, kafka_bootstrap_servers=servers
    )


async def assert_refused(database_url: str, servers: str, setting: str) -> None:
    checker = await relay(database_url, servers)
    said = await checker.says("outbox-checker: ")
    assert await checker.process.wait() == USAGE
    assert setting in said.splitlines()[-1]
    logged = [line for line in said.splitlines() if "relay_refused" in line]
    assert len(logged) == 1
    assert setting in logged[0]


@pytest.mark.deep
async def test_a_broker_whose_transactions_are_not_safe_is_refused_and_named(
    tmp_path: Path, database_url: str, doctor: Doctor
) -> None:
    setting = "transaction.partition.verification.enable"
    with kafka_with(tmp_path / "kafka", {setting: "false"}) as servers:
        code, failed = await doctor(database_url, servers)
        assert code == 1
        assert setting in failed
        await assert_refused(database_url, servers, setting)


async def test_a_progress_topic_that_is_compacted_is_refused_and_named(
    database_url: str, kafka_broker: EmbeddedKafka, doctor: Doctor
) -> None:
    servers = kafka_broker.bootstrap_servers
    ensure_progress_topic(servers)
    set_cleanup(servers, "compact")
    try:
        _, failed = await doctor(database_url, servers)
        assert "cleanup.policy" in failed
        await assert_refused(database_url, servers, "cleanup.policy")
    finally:
        set_cleanup(servers, "delete")


async def test_a_pooler_in_the_url_is_refused_and_named(
    database_url: str, kafka_broker: EmbeddedKafka, doctor: Doctor
) -> None:
    servers = kafka_broker.bootstrap_servers
    ensure_progress_topic(servers)
    async with pooled(database_url) as url:
        _, failed = await doctor(url, servers)
        assert "connection" in failed
        await assert_refused(url, servers, "connection")


@pytest.mark.deep
async def test_a_relay_stops_when_postgresql_comes_back_unsafe(
    tmp_path: Path, kafka_broker: EmbeddedKafka
) -> None:
    ensure_progress_topic(kafka_broker.bootstrap_servers)
    (port,) = free_ports(1)
    with postgres_with(tmp_path / "postgres", {}, port, erase=False) as database_url:
        checker = await relay(database_url, kafka_broker.bootstrap_servers)
        with psycopg.connect(database_url, autocommit=True) as connection:
            await asyncio.to_thread(wait_for, lambda: shard_locks(connection) == ALL_SHARDS)
    with postgres_with(tmp_path / "postgres", {"fsync": "off"}, port):
        assert "server_unsafe" in await checker.says("fsync: off")
        with psycopg.connect(database_url, autocommit=True) as connection:
            assert shard_locks(connection) == 0
        code, _ = await checker.stop()
    assert code == 0
