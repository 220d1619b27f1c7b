"""Sessions that are opened only on a server that is safe to use.

After a restart, a failover, a restore, or a change of the address behind the URL, PostgreSQL may
have other settings than when the program started, or lower transaction ids.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

import psycopg

from outbox.errors import ConfigurationError, IdsBehind, UnsafeServer
from outbox.postgres.sessions.connections import (
    PLAN_EACH_CALL,
    PLAN_ONCE,
    Connection,
    Pool,
    connect,
    make_pool,
)
from outbox.postgres.sessions.id_counter import refuse_ids_behind, refuse_pool_behind
from outbox.postgres.sessions.server_facts import server_facts
from outbox.relay.server_requirements import judge_postgres

RELAY_SECONDS: Final = 30.0
"""Longest silence of PostgreSQL during an exchange of a relay, which reads and writes one batch."""


def connect_verified(database_url: str, application: str) -> Connection:
    """Open a relay's connection as `connect` does; raises UnsafeServer."""
    connection = connect(database_url, application, PLAN_ONCE, answer_seconds=RELAY_SECONDS)
    with ExitStack() as unless_safe:
        unless_safe.callback(connection.close)
        unsafe = [each for each in judge_postgres(server_facts(connection)) if not each.safe]
        if unsafe:
            found = "; ".join(f"{each.setting}: {each.detail}" for each in unsafe)
            raise UnsafeServer(f"unsafe settings: {found}")
        refuse_ids_behind(connection)
        unless_safe.pop_all()
    return connection


def make_verified_pool(
    database_url: str,
    application: str,
    *,
    pool_max: int,
    plans: str = PLAN_EACH_CALL,
    answer_seconds: float | None = None,
) -> Pool:
    """Return a pool as `make_pool` does; it opens no session whose new ids would be too low."""
    return make_pool(
        database_url,
        application,
        pool_max=pool_max,
        admit=refuse_pool_behind,
        plans=plans,
        answer_seconds=answer_seconds,
    )


def refuse_to_start_behind(database_url: str, application: str) -> str | None:
    """Raise ConfigurationError if new ids would be too low; return why a server does not answer.

    Such a server passes: its sessions are judged when they open.
    """
    try:
        with connect(database_url, application) as connection:
            refuse_ids_behind(connection)
    except IdsBehind as error:
        raise ConfigurationError(str(error)) from None
    except psycopg.Error as error:
        return str(error).strip().splitlines()[0]
    return None
