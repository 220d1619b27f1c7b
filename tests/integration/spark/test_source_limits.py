"""The sessions in which Spark reads PostgreSQL have no limit of time that is meant for others."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from outbox.postgres.sessions.jdbc import jdbc_address
from spark.cut.sources import IMPORT_SNAPSHOT

pytestmark = pytest.mark.postgres

LIMITS = """
SELECT name FROM pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout',
    'idle_in_transaction_session_timeout')
"""


def test_what_a_database_limits_for_other_programs_does_not_end_a_read(database_url: str) -> None:
    """Between two fetches the session is idle in its transaction, as long as Spark works."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        limits = [name for (name,) in connection.execute(LIMITS)]
        for limit in limits:
            connection.execute(
                f"ALTER DATABASE {connection.info.dbname} SET {limit} = '1h'".encode()
            )
    query = urlsplit(jdbc_address(database_url).url.removeprefix("jdbc:")).query
    (options,) = parse_qs(query)["options"]
    with (
        psycopg.connect(database_url) as audit,
        psycopg.connect(database_url, options=options) as reader,
    ):
        audit.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        (snapshot,) = audit.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        reader.execute(IMPORT_SNAPSHOT.format(snapshot).encode())
        left = {limit: reader.execute(f"SHOW {limit}".encode()).fetchone() for limit in limits}
    assert set(left.values()) == {("0",)}, left
