"""Sessions of the relay, each opened only on a server whose settings are safe.

After a restart, a failover, or a change of the address behind the URL, PostgreSQL may have other
settings than when the relay started.
"""

from __future__ import annotations

from contextlib import ExitStack

from outbox.errors import UnsafeServer
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.server_facts import server_facts
from outbox.relay.server_requirements import judge_postgres


def connect_verified(database_url: str, application: str) -> Connection:
    """Open a connection as `connect` does; raises UnsafeServer."""
    connection = connect(database_url, application)
    with ExitStack() as unless_safe:
        unless_safe.callback(connection.close)
        unsafe = [each for each in judge_postgres(server_facts(connection)) if not each.safe]
        if unsafe:
            found = "; ".join(f"{each.setting}: {each.detail}" for each in unsafe)
            raise UnsafeServer(f"unsafe settings: {found}")
        unless_safe.pop_all()
    return connection
