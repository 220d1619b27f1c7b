"""Our own listeners, in every form in which the settings may name them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from outbox.checks.ssrf_guard import read_check_url
from outbox.errors import CheckUrlForbidden, ConfigurationError
from outbox.http_checks.own_listeners import (
    OwnListeners,
    database_places,
    own_listeners,
    ssrf_policy,
)
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings

LIBPQ = {
    "postgresql://u:p@db:6432/x": {("db", 6432)},
    "postgresql://u:p@db/x": {("db", 5432)},
    "postgresql://u:p@a:1,b:2,c/x": {("a", 1), ("b", 2), ("c", 5432)},
    "postgresql://[2001:db8::1]:7/x": {("2001:db8::1", 7)},
    "postgresql:///x?host=db&port=7": {("db", 7)},
    "postgresql:///x?host=a,b&port=7": {("a", 7), ("b", 7)},
    "postgresql:///x?host=a,b&port=7,8": {("a", 7), ("b", 8)},
    "postgresql://db:7/x?hostaddr=10.0.0.5": {("db", 7), ("10.0.0.5", 7)},
    "postgresql:///x?hostaddr=10.0.0.5,10.0.0.6": {("10.0.0.5", 5432), ("10.0.0.6", 5432)},
    "host=db port=7 dbname=x password='a b'": {("db", 7)},
    "hostaddr=10.0.0.5 dbname=x": {("10.0.0.5", 5432)},
    "host=/run/postgresql dbname=x": {("/run/postgresql", 5432)},
    "dbname=x": {("", 5432)},
    "postgresql:///x": {("", 5432)},
}


@pytest.mark.parametrize("url", LIBPQ)
def test_a_database_is_found_in_every_form_that_libpq_takes(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    assert set(database_places(url, "X")) == LIBPQ[url]


def test_what_libpq_takes_from_the_environment_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "from-environment")
    monkeypatch.setenv("PGHOSTADDR", "10.0.0.9")
    monkeypatch.setenv("PGPORT", "77")
    assert set(database_places("dbname=x", "X")) == {("from-environment", 77), ("10.0.0.9", 77)}
    assert ("10.0.0.9", 7) in set(database_places("host=db port=7", "X"))


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("service=prod dbname=x", {("10.0.0.7", 6543)}),
        ("postgresql:///x?service=prod", {("10.0.0.7", 6543)}),
        ("postgresql://db/x?service=prod", {("db", 6543)}),
        ("postgresql:///x?service=several", {("a", 1), ("b", 2)}),
        ("dbname=x", {("of-the-environment", 5432)}),
        ("service=socket", {("/run/postgresql", 5432)}),
    ],
)
def test_a_service_file_names_the_database(
    url: str, places: set[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").write_text(
        "[prod]\nhost=10.0.0.7\nport=6543\n[several]\nhost=a,b\nport=1,2\n"
        "[socket]\nhost=/run/postgresql\nport=5432\n[other]\nhost=of-the-environment\n"
    )
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGSERVICE", "other")
    assert set(database_places(url, "X")) == places
    assert os.environ["PGSERVICE"] == "other"  # noqa: TID251


@pytest.mark.parametrize("url", ["postgresql://h:port/x", "host='a", "hots=x", "host=h port=x"])
def test_an_address_that_cannot_be_read_is_refused_without_its_parts(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        list(database_places(url, "OUTBOX_X"))
    assert str(refused.value) == "OUTBOX_X: not a PostgreSQL address"


def settings_with(**settings: Any) -> Settings:
    """Return the settings of an installation, with some of them changed."""
    given = {
        "database_url": "postgresql://10.0.0.1/x",
        "kafka_bootstrap_servers": "10.0.0.2:9092,10.0.0.3",
        "reconcile_replica_url": "postgresql://10.0.0.4:6432/x",
        "api_url": "https://10.0.0.5",
        "checker_metrics_bind": "10.0.0.6:9464",
        "metrics_bind": "[2001:db8::7]:9465",
        **settings,
    }
    return load_settings({}, given)


def listeners(**settings: Any) -> OwnListeners:
    """Return the listeners of an installation with these settings."""
    return own_listeners(settings_with(**settings))


def test_every_server_of_the_settings_is_a_listener() -> None:
    known = {(str(network), port) for network, port in listeners().known()}
    assert known == {
        ("10.0.0.1/32", 5432),
        ("10.0.0.2/32", 9092),
        ("10.0.0.3/32", 9092),
        ("10.0.0.4/32", 6432),
        ("10.0.0.5/32", 443),
        ("10.0.0.6/32", 9464),
        ("2001:db8::7/128", 9465),
        ("127.0.0.0/8", 8080),
        ("::1/128", 8080),
    }


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("::ffff:10.0.0.5", "10.0.0.5/32"),
        ("64:ff9b::10.0.0.5", "10.0.0.5/32"),
        ("::ffff:127.0.0.1", "127.0.0.0/8"),
        ("0", "127.0.0.0/8"),
        ("127.1", "127.0.0.0/8"),
    ],
)
def test_a_listener_in_an_odd_spelling_is_known_by_its_ipv4_address(
    host: str, network: str
) -> None:
    found = OwnListeners([(host, 5432)])
    found.find(5432)
    assert network in {str(each) for each, _ in found.at(5432)}


@pytest.mark.parametrize("folder", ["/run/postgresql", "@outbox"])
def test_the_server_of_a_local_socket_may_listen_on_every_address_here(folder: str) -> None:
    found = listeners(database_url=f"postgresql:///x?host={folder}")
    assert found.is_here(5432)
    assert {str(network) for network, _ in found.at(5432)} == {"127.0.0.0/8", "::1/128"}


def test_a_url_of_a_listener_or_behind_nat64_is_refused_without_a_look_up() -> None:
    policy = ssrf_policy(
        settings_with(
            check_allow_cidrs="0.0.0.0/0,::/0",
            check_allow_ports="1-65535",
            check_nat64_prefixes="2001:4860::/96",
        )
    )
    for url, rule in {
        "http://10.0.0.1:5432/check": "own-listener",
        "http://localhost:8080/check": "own-listener",
        "http://[2001:4860::10.0.0.1]:5432/check": "own-listener",
        "http://[2001:4860::169.254.169.254]/check": "link-local",
    }.items():
        with pytest.raises(CheckUrlForbidden) as refused:
            read_check_url(url, policy)
        assert refused.value.rule == rule
    assert read_check_url("http://10.0.0.1:5433/check", policy).port == 5433


@pytest.mark.parametrize("bind", ["0.0.0.0:8080", "[::]:8080", ":8080"])
def test_a_listener_on_every_address_is_on_this_machine(bind: str) -> None:
    found = listeners(http_bind=bind)
    assert found.is_here(8080)
    assert not listeners(http_bind="10.0.0.9:8080").is_here(8080)


def test_a_name_is_looked_up_for_its_own_port_alone() -> None:
    found = listeners(database_url="postgresql://localhost.invalid:5433/x")
    assert found.has_names(5433)
    assert not found.has_names(9092)
    found.find(5433)
    assert found.at(5433) == ()
