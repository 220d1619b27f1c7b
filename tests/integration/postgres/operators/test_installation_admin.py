"""A copied database beside its original: it needs a new installation id before it publishes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import psycopg
import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import CommandFailed, ExitCode
from devservers.postgres import EmbeddedPostgres
from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect
from outbox.relay.halt_resolution import HaltResolution
from outbox.relay.protocol.state import HaltReason, Phase
from tests.fixtures_databases import drop_database, make_database
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

RENEW = ["-o", "json", "--yes", "installation", "renew", "--reason", "a copy for a rehearsal"]


@pytest.fixture
def copy(world: RelayWorld, postgres_server: EmbeddedPostgres) -> Iterator[RelayWorld]:
    """Yield a copy of a database that has published one message and is published from again.

    A copy by template has the same system identifier, like a copy of the files: only its
    installation id distinguishes it from the original.
    """
    world.commit_values(b"before")
    drain(world.relay())
    world.relay_again()
    source = urlsplit(world.database_url).path.lstrip("/")
    world.connection.close()
    url = make_database(postgres_server.database_url, source)
    world.connection = psycopg.connect(world.database_url, autocommit=True)
    drain(world.relay_again())
    with connect(url, "test") as connection:
        copied = replace(world, database_url=url, connection=connection, opened=[])
        yield copied
        for relay in copied.opened:
            relay.close()
    world.connection.close()
    drop_database(postgres_server.database_url, url)


@pytest.fixture(autouse=True)
def settings(copy: RelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the command at the copy."""
    for name, value in copy.environment.items():
        monkeypatch.setenv(name, value)


def halt_of(copy: RelayWorld) -> HaltReason | None:
    """Run the copy's relay until it halts; return the reason."""
    return drain(copy.relay_again()).halt


def test_a_renewed_copy_publishes_elsewhere_and_its_original_continues_undisturbed(
    world: RelayWorld, copy: RelayWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = (
        make_topic(copy.bootstrap_servers, partitions=SHARDS),
        make_topic(copy.bootstrap_servers, partitions=1),
    )
    original = world.opened[-1]
    assert run(RENEW) == ExitCode.OK
    shown = json.loads(capsys.readouterr().out)
    assert shown["installation"] == str(copy.one("SELECT installation_id FROM outbox.installation"))
    assert shown["was"] == str(world.one("SELECT installation_id FROM outbox.installation"))
    assert halt_of(copy) is HaltReason.CLUSTER_CHANGED
    with pytest.raises(CommandFailed, match="belongs to the installation"):
        copy.resolve(HaltResolution.ACCEPT)
    copy.progress_topic, copy.topic = elsewhere
    copy.resolve(HaltResolution.ACCEPT)
    copy.commit_values(b"of the copy")
    assert drain(copy.relay_again()).phase is Phase.RUN
    world.commit_values(b"of the original")
    assert original.run_once().phase is Phase.RUN
    assert drain(original).phase is Phase.RUN
    assert world.values(2) == [b"before", b"of the original"]
    assert copy.values(1) == [b"of the copy"]
    drops = world.metrics["relay_drops_total"].collect()
    assert [sample.value for each in drops for sample in each.samples if sample.value] == []


def test_renewal_is_refused_while_a_relay_has_a_shard_and_without_a_reason(
    copy: RelayWorld,
) -> None:
    relay = copy.relay()
    copy.connection.execute("SELECT pg_advisory_lock(1869968482, 3)")
    assert run(RENEW) == ExitCode.CONFLICT
    assert run(["installation", "renew", "--reason", " "]) == ExitCode.USAGE
    assert run(["installation", "renew"]) == ExitCode.USAGE
    copy.connection.execute("SELECT pg_advisory_unlock_all()")
    relay.close()
    assert run(RENEW) == ExitCode.OK
    audited = copy.connection.execute("SELECT action, reason FROM outbox.audit_log")
    assert audited.fetchall() == [("installation.renew", "a copy for a rehearsal")]
    halted = "SELECT count(*) FROM outbox.progress WHERE halt_reason = 'cluster_changed'"
    assert copy.one(halted) == SHARDS
