"""The consumer's database, with its inbox and a table of effects."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.integration.client.inbox.fixtures_mortal_consumer import INBOX

TABLES = "CREATE TABLE effect (message_id text NOT NULL); CREATE SEQUENCE repeated"


@pytest.fixture
def database(local_database: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection in autocommit."""
    with psycopg.connect(local_database, autocommit=True) as connection:
        INBOX.create_table(connection)
        connection.execute(TABLES)
        yield connection
