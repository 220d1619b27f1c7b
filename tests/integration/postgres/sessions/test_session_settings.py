"""Every session of the service commits synchronously, whatever role, database or URL set."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from devservers.postgres import EmbeddedPostgres
from outbox.postgres.sessions.advisory_locks import PostgresAdvisoryLocks
from outbox.postgres.sessions.connections import connect, make_pool

pytestmark = pytest.mark.postgres

SHOWN = "SELECT current_setting('synchronous_commit')"
OTHER_SETTINGS = "SELECT current_setting('work_mem'), current_setting('application_name')"
GIVES_UP = (
    "SELECT current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),"
    " current_setting('tcp_keepalives_count'), current_setting('tcp_user_timeout')"
)
WEAKER = ["off", "local", "remote_write"]


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


async def test_the_server_ends_a_session_soon_after_its_programs_host_is_gone(
    database_url: str,
) -> None:
    """Its locks would stay for hours by default; so would a COPY, and no relay reads past one."""
    times = await pool_shows(database_url, GIVES_UP)
    assert times == thread_shows(database_url, GIVES_UP)
    idle, interval, count, unacknowledged_ms = map(int, times)
    assert 0 < idle + interval * count <= 20
    assert 0 < unacknowledged_ms <= 20_000


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


@pytest.mark.parametrize("weaker", WEAKER)
async def test_the_urls_options_are_kept_but_do_not_weaken_our_commits(
    database_url: str, weaker: str
) -> None:
    url = with_options(database_url, f"-c synchronous_commit={weaker} -c work_mem=5MB")
    assert (await pool_shows(url), thread_shows(url)) == (("on",), ("on",))
    assert (
        await pool_shows(url, OTHER_SETTINGS)
        == thread_shows(url, OTHER_SETTINGS)
        == ("5MB", "outbox-test")
    )


async def test_a_url_may_ask_for_more_than_on(database_url: str) -> None:
    url = with_options(database_url, "-c synchronous_commit=remote_apply")
    assert (await pool_shows(url), thread_shows(url)) == (("remote_apply",), ("remote_apply",))


async def test_an_advisory_lock_is_taken_on_a_url_with_options(database_url: str) -> None:
    locks = PostgresAdvisoryLocks(with_options(database_url, "-c work_mem=5MB"))
    async with locks.try_lock("sweep") as held:
        assert held
    await locks.close()
