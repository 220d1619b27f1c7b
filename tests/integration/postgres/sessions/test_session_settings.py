"""No setting of a role, a database or a URL changes what the sessions of the service rely on."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import PoolTimeout

from devservers.postgres import EmbeddedPostgres
from outbox.errors import DatabaseUnavailable
from outbox.messages.manifest import Position
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import (
    AsyncConnection,
    Connection,
    connect,
    make_pool,
)
from tests.fixtures_databases import as_role
from tests.integration.checker.fixtures_pooler import pooled

pytestmark = pytest.mark.postgres

SHOWN = "SELECT current_setting('synchronous_commit')"
WEAKER = ["off", "local", "remote_write"]
FOR_OTHERS = {
    "array_nulls": "off",
    "bytea_output": "escape",
    "client_min_messages": "error",
    "datestyle": "German",
    "default_transaction_isolation": "repeatable read",
    "extra_float_digits": "-15",
    "idle_session_timeout": "1h",
    "intervalstyle": "sql_standard",
    "lock_timeout": "1h",
    "quote_all_identifiers": "on",
    "search_path": "public",
    "standard_conforming_strings": "off",
    "statement_timeout": "1h",
}
"""What the owner of a shared database may set there, and it would reach our sessions too."""
FOR_OTHER_CLIENTS = {
    "PGAPPNAME": "theirs",
    "PGCLIENTENCODING": "LATIN1",
    "PGDATESTYLE": "German",
    "PGOPTIONS": "-c statement_timeout=1h",
    "PGTZ": "Asia/Tokyo",
}
"""What a user's shell may set, and libpq sends."""
LIMITS = (
    "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),"
    " coalesce(current_setting('transaction_timeout', true), '5s')"
)
HAS_TRANSACTION_LIMITS = 170_000
"""The first release that ends a session whose transaction is too long."""


def with_options(url: str, options: str) -> str:
    return f"{url}?options={quote(options)}"


async def pool_shows(url: str, statement: str = SHOWN) -> tuple[str, ...]:
    async with make_pool(url, "test", pool_max=1) as pool, pool.connection() as connection:
        cursor = await connection.execute(statement.encode())
        row: tuple[str, ...] | None = await cursor.fetchone()
    assert row is not None
    return row


def thread_shows(url: str, statement: str = SHOWN) -> tuple[str, ...]:
    with connect(url, "test") as connection:
        row: tuple[str, ...] | None = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row


async def test_a_server_that_vanishes_is_given_up_before_linux_does(database_url: str) -> None:
    """A host that is gone answers nothing, and what was sent to it is sent again for minutes."""
    with connect(database_url, "test") as session:
        assert 0 < give_up_ms(session.fileno()) <= 20_000
    async with make_pool(database_url, "test", pool_max=1) as pool, pool.connection() as connection:
        assert 0 < give_up_ms(connection.fileno()) <= 20_000


def give_up_ms(fileno: int) -> int:
    """Return how long the socket may have unacknowledged bytes; 0 is about a quarter of an hour."""
    with socket.socket(fileno=os.dup(fileno)) as copy:
        return copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


@pytest.fixture
def role(postgres_server: EmbeddedPostgres, database_url: str) -> Iterator[str]:
    """Yield the database's URL with a role that only this test uses."""
    parts = {"user": "weak", "password": "weak"}
    with psycopg.connect(postgres_server.database_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE weak LOGIN PASSWORD 'weak'")
        yield make_conninfo(database_url, **parts)
        connection.execute("DROP ROLE weak")


@pytest.mark.parametrize("weaker", WEAKER)
async def test_no_default_weakens_the_commits_of_our_sessions(
    postgres_server: EmbeddedPostgres, role: str, weaker: str
) -> None:
    name = conninfo_to_dict(role)["dbname"]
    with psycopg.connect(postgres_server.database_url, autocommit=True) as connection:
        for whose in ("ROLE weak", f"DATABASE {name}", f"ROLE weak IN DATABASE {name}"):
            change = f"ALTER {whose} SET synchronous_commit = {weaker}"
            connection.execute(change.encode())
    with psycopg.connect(role) as plain:
        assert plain.execute(SHOWN).fetchone() == (weaker,)
    assert (await pool_shows(role), thread_shows(role)) == (("on",), ("on",))


def set_for_others(connection: Connection) -> None:
    for name, value in FOR_OTHERS.items():
        change = f"ALTER DATABASE {connection.info.dbname} SET {name} = '{value}'"
        connection.execute(change.encode())


async def test_what_a_shared_database_sets_for_others_does_not_reach_our_sessions(
    database_url: str,
) -> None:
    names = ", ".join(f"current_setting('{name}')" for name in FOR_OTHERS)
    shown = f"SELECT {names}"
    ours = thread_shows(database_url, shown)
    with psycopg.connect(database_url, autocommit=True) as connection:
        set_for_others(connection)
    with psycopg.connect(database_url) as theirs:
        row = theirs.execute(shown.encode()).fetchone()
        assert row is not None
        assert not {*zip(FOR_OTHERS, ours, strict=True)} & {*zip(FOR_OTHERS, row, strict=True)}
    assert await pool_shows(database_url, shown) == thread_shows(database_url, shown) == ours


async def test_what_the_environment_sets_for_others_does_not_reach_our_sessions(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("DateStyle", "TimeZone", "client_encoding", "statement_timeout", "application_name")
    shown = "SELECT {}".format(", ".join(f"current_setting('{name}')" for name in names))
    for name, value in FOR_OTHER_CLIENTS.items():
        monkeypatch.setenv(name, value)
    ours = ("ISO, MDY", "UTC", "UTF8", "0", "outbox-test")
    assert await pool_shows(database_url, shown) == thread_shows(database_url, shown) == ours


async def test_limits_in_the_url_are_kept(database_url: str) -> None:
    limits = "-c statement_timeout=7s -c lock_timeout=6s"
    if release(database_url) >= HAS_TRANSACTION_LIMITS:
        limits += " -c transaction_timeout=5s"
    url = with_options(database_url, limits)
    assert await pool_shows(url, LIMITS) == thread_shows(url, LIMITS) == ("7s", "6s", "5s")


def release(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.info.server_version


def test_a_policy_that_hides_rows_is_an_error_and_no_empty_table(database_url: str) -> None:
    """A relay would publish nothing, and a leaf would be removed with what it still has."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE outbox.commit_log ENABLE ROW LEVEL SECURITY")
    relay = PostgresCommitLog(
        as_role(database_url, "outbox_checker"), 0, batch_max=100, owner="test"
    )
    with closing(relay), pytest.raises(DatabaseUnavailable):
        relay.read(Position(0, 0))


async def test_a_url_may_ask_for_more_than_on(database_url: str) -> None:
    url = with_options(database_url, "-c synchronous_commit=remote_apply")
    assert (await pool_shows(url), thread_shows(url)) == (("remote_apply",), ("remote_apply",))


async def test_a_pooler_that_leaves_our_settings_out_is_refused(database_url: str) -> None:
    """Nothing would overrule a commit that does not wait for the disk."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        weak = f"ALTER DATABASE {connection.info.dbname} SET synchronous_commit = off"
        connection.execute(weak.encode())
    async with pooled(database_url, ignores_options=True) as url:
        pool = make_pool(url, "test", pool_max=1)
        async with pool:
            with pytest.raises(PoolTimeout):
                async with pool.connection(timeout=1) as connection:
                    raise AssertionError(await committed_how(connection))
    assert "synchronous_commit is off" in (pool.refusal or "")
    async with pooled(database_url) as url:
        assert await pool_shows(url) == ("on",)


async def committed_how(connection: AsyncConnection) -> str:
    row = await (await connection.execute(SHOWN)).fetchone()
    return f"synchronous_commit is {row}"
