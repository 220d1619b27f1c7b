"""The source database's address in the form of JDBC."""

from __future__ import annotations

import pytest

from outbox.errors import ConfigurationError
from outbox.postgres.sessions.jdbc import jdbc_address


@pytest.mark.parametrize(
    ("given", "begin"),
    [
        ("postgresql://u:p@db:5433/box", "jdbc:postgresql://db:5433/box?"),
        ("postgresql://u@db/box", "jdbc:postgresql://db:5432/box?"),
        ("postgresql://u@[::1]:1/box", "jdbc:postgresql://[::1]:1/box?"),
        ("postgresql://u@one,two:7/box", "jdbc:postgresql://one:5432,two:7/box?"),
        ("postgresql://u@one:1,two:2/box", "jdbc:postgresql://one:1,two:2/box?"),
    ],
)
def test_an_address_is_translated_to_jdbc(given: str, begin: str) -> None:
    assert jdbc_address(given).url.startswith(begin)


def test_the_address_has_no_user_and_no_password() -> None:
    address = jdbc_address("postgresql://auditor:s3cret%40@db/box?sslmode=require")
    assert (address.user, address.password) == ("auditor", "s3cret@")
    assert "s3cret" not in address.url
    assert "s3cret" not in repr(address)
    assert "sslmode=require" in address.url


@pytest.mark.parametrize("given", ["postgresql:///box?host=/run/postgresql", "nonsense"])
def test_an_address_that_jdbc_cannot_reach_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError):
        jdbc_address(given)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("read-write", "primary"),
        ("primary", "primary"),
        ("read-only", "secondary"),
        ("standby", "secondary"),
        ("prefer-standby", "preferSecondary"),
    ],
)
def test_spark_asks_for_the_same_of_several_hosts(asked: str, wanted: str) -> None:
    """Otherwise it would read a standby that is named first, where the snapshot is not known."""
    address = jdbc_address(f"postgresql://u@one,two/box?target_session_attrs={asked}")
    assert f"targetServerType={wanted}" in address.url.partition("?")[2].split("&")
