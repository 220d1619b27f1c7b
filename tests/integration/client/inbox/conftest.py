"""The consumer's database, with its inbox."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from outbox_client.inbox.psycopg import PsycopgInbox


@pytest.fixture
def database(local_database: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection in autocommit to a database with an inbox."""
    with psycopg.connect(local_database, autocommit=True) as connection:
        PsycopgInbox("member-service").create_table(connection)
        yield connection
