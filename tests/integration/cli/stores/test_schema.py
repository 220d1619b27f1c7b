"""The schema is made only in a database that can store what it is for."""

from __future__ import annotations

import psycopg
import pytest

from cli.stores.schema import upgrade
from devservers.postgres import EmbeddedPostgres
from outbox.errors import ConfigurationError
from tests.fixtures_databases import drop_database, with_database

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
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
