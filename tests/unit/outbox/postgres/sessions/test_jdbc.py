"""The source database's address in the form of JDBC."""

from __future__ import annotations

from pathlib import Path

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


def test_what_a_service_file_and_the_environment_name_counts_for_spark_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").write_text(
        "[prod]\nhost=db\nport=5433\nuser=auditor\npassword=s3cret\ndbname=box\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGHOST", "elsewhere")
    address = jdbc_address("service=prod")
    assert address.url.startswith("jdbc:postgresql://db:5433/box?")
    assert "sslmode=verify-full" in address.url
    assert (address.user, address.password) == ("auditor", "s3cret")
    assert jdbc_address("postgresql://u@/box").url.startswith(
        "jdbc:postgresql://elsewhere:5432/box?"
    )
    monkeypatch.setenv("PGHOST", "/run/postgresql")
    with pytest.raises(ConfigurationError, match="not a socket"):
        jdbc_address("postgresql://u@/box")


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
