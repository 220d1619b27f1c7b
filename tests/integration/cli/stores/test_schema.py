"""The schema is made only in a database that can store what it is for."""

from __future__ import annotations

from urllib.parse import urlsplit

import psycopg
import pytest

from cli.stores.schema import schema_state, upgrade
from devservers.loopback import LOOPBACK, free_ports
from devservers.postgres import EmbeddedPostgres
from outbox.errors import ConfigurationError
from outbox.operators.health_check import HealthStatus
from outbox.postgres.operators.postgres_checks import postgres_checks
from outbox.settings.environment import load_settings
from tests.fixtures_databases import drop_database, with_database

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("encoding", ["LATIN1"])
def test_a_database_of_another_encoding_than_utf8_is_refused(
    postgres_server: EmbeddedPostgres, encoding: str
) -> None:
    url = with_database(postgres_server.database_url, f"test_{encoding}".lower())
    drop_database(postgres_server.database_url, url)
    with psycopg.connect(postgres_server.database_url, autocommit=True) as connection:
        options = f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
        connection.execute(f"CREATE DATABASE test_{encoding} {options}".encode())
    with pytest.raises(ConfigurationError, match=f"encoding {encoding}: .*ENCODING 'UTF8'"):
        upgrade(url)
    with psycopg.connect(url) as connection:
        made = connection.execute("SELECT to_regnamespace('outbox') IS NOT NULL").fetchone()
    assert made == (False,)
    drop_database(postgres_server.database_url, url)


LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


def test_limits_of_time_for_other_programs_do_not_end_a_migration(database_url: str) -> None:
    """A long one would be ended each time that somebody runs it again."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for limit in LIMITS:
            change = f"ALTER DATABASE {connection.info.dbname} SET {limit} = '1ms'"
            connection.execute(change.encode())
    upgrade(database_url)
    assert schema_state(database_url).is_current


def test_a_migration_finds_the_primary_among_several_hosts(database_url: str) -> None:
    (nobody,) = free_ports(1)
    place = urlsplit(database_url)
    hosts = f"{LOOPBACK}:{nobody},{place.netloc.rpartition('@')[2]}"
    user = place.netloc.rpartition("@")[0]
    several = place._replace(netloc=f"{user}@{hosts}", query="target_session_attrs=read-write")
    upgrade(several.geturl())
    assert schema_state(several.geturl()).is_current


def test_a_database_that_a_newer_version_has_migrated_stays_as_it_is(database_url: str) -> None:
    """So the way back to the version before begins with its own start."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE outbox.alembic_version SET version_num = '9999'")
    upgrade(database_url)
    assert schema_state(database_url).is_current
    found = postgres_checks(load_settings({"OUTBOX_DATABASE_URL": database_url}))
    assert {each.check: each.verdict for each in found}["migrations"] is HealthStatus.OK
