"""The parts of an address of PostgreSQL are what libpq takes them for, or it is refused."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from pydantic import SecretStr

from outbox.settings.postgres_address import PARAMETERS, postgres_address

TAKEN = (
    "postgresql://db.example.com/outbox?sslmode=verify-full&sslrootcert=/etc/ssl/db-ca.pem",
    "postgresql://u:p%40ss@[::1]:5432,other:5433/outbox?options=-c%20x%3D1&target_session_attrs=any",
    "postgres:///outbox?host=/run/postgresql&password=a%26b#c?d/e",
    "postgresql://db/outbox?",
    "postgresql://",
    "host=db port=5432 password='a b\\'c=d' sslmode = require",
    "service=outbox",
)
REFUSED = (
    "postgresql://u@db/outbox?password=a%zz",
    "postgresql://u@db/outbox?password=a&b=c",
    "postgresql://u@db/outbox?password=a&b",
    "postgresql://u@db/outbox?password=a=b",
    "postgresql://u@db/outbox?password=a b",
    "postgresql://u@db/outbox?password=a&&sslmode=require",
    "host=db password=a b=c",
    "host=db password=a b",
)


@pytest.mark.parametrize("text", TAKEN)
def test_an_address_that_libpq_reads_is_taken(text: str) -> None:
    address = SecretStr(text)
    conninfo_to_dict(text)
    assert postgres_address(address) is address


@pytest.mark.parametrize("text", REFUSED)
def test_an_address_with_a_part_that_may_be_one_of_a_password_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^is not a PostgreSQL address .*: percent-encode [a-z ]+$"
    ):
        postgres_address(SecretStr(text))


def test_every_parameter_of_this_libpq_is_known() -> None:
    known = {each.keyword.decode() for each in Conninfo.get_defaults()}
    assert known - PARAMETERS == set()
