"""A check never reaches a server of the installation itself, wherever that server is now."""

from __future__ import annotations

import socket

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from devservers.postgres import EmbeddedPostgres
from outbox.checks.check_round import Answer, Outcome
from outbox.checks.ssrf_guard import policy_of
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.guarded_connector import GuardedResolver, guarded_resolver
from outbox.http_checks.own_listeners import OwnListeners, database_places, is_this_machine
from outbox.settings.environment import load_settings
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.http_checks.fixtures_name_server import answer_names
from tests.integration.http_checks.fixtures_questions import ask

OPEN = policy_of(["0.0.0.0/0", "::/0"], [], ["1-65535"])
INSTALLATION = {
    "database_url": "postgresql://192.0.2.9/x",
    "kafka_bootstrap_servers": "192.0.2.9:9092",
    "check_allow_cidrs": "0.0.0.0/0,::/0",
    "check_allow_ports": "1-65535",
}
"""Settings that allow checks every network."""


async def asked(own: OwnListeners, url: str) -> Answer:
    """Ask a check endpoint where the operator allows every network."""
    async with HttpCheckEndpoint(GuardedResolver(OPEN, own)) as endpoint:
        return await ask(endpoint, url)


@pytest.mark.postgres
@pytest.mark.parametrize(
    "form",
    [
        "postgresql://{user}:{password}@127.0.0.1:{port}/{dbname}",
        "postgresql://{user}:{password}@/{dbname}?host=127.0.0.1&port={port}",
        "postgresql://{user}:{password}@nowhere.invalid:{port}/{dbname}?hostaddr=127.0.0.1",
        "postgresql://{user}:{password}@127.0.0.1:1,127.0.0.1:{port}/{dbname}",
        "host=127.0.0.1 port={port} user={user} password={password} dbname={dbname}",
        "hostaddr=127.0.0.1 port={port} user={user} password={password} dbname={dbname}",
        "host=localhost port={port} user={user} password={password} dbname={dbname}",
    ],
)
async def test_the_database_is_no_target_in_any_form_in_which_libpq_finds_it(
    postgres_server: EmbeddedPostgres, form: str
) -> None:
    parts = {"password": "", **conninfo_to_dict(postgres_server.database_url)}
    url = form.format(**parts)
    with psycopg.connect(url) as connection:
        port = connection.info.port
    answer = await asked(OwnListeners(database_places(url, "X")), f"http://127.0.0.1:{port}/check")
    assert (answer.outcome, answer.error) == (Outcome.BLOCKED, "own-listener")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("database_url", "postgresql://db.test:{port}/x"),
        ("database_url", "host=elsewhere.test,db.test port=1,{port} dbname=x"),
        ("reconcile_replica_url", "postgresql:///x?host=db.test&port={port}"),
        ("kafka_bootstrap_servers", "elsewhere.test:1,db.test:{port}"),
        ("api_url", "http://db.test:{port}"),
    ],
)
async def test_after_a_failover_the_new_address_is_no_target_and_the_old_one_neither(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    names = {"elsewhere.test": ["192.0.2.8"], "db.test": ["192.0.2.1"], "check.test": ["127.0.0.1"]}
    answer_names(monkeypatch, names)
    async with Producer(says("COMMIT")) as producer:
        url = producer.url.replace("127.0.0.1", "check.test")
        named = {**INSTALLATION, setting: value.format(port=producer.port)}
        async with HttpCheckEndpoint(guarded_resolver(load_settings({}, named))) as endpoint:
            assert (await ask(endpoint, url)).outcome is Outcome.COMMIT
            names["db.test"] = ["127.0.0.1"]
            promoted = await ask(endpoint, url)
            names["db.test"] = ["192.0.2.2"]
            former = await ask(endpoint, url)
    for answer in (promoted, former):
        assert (answer.outcome, answer.error) == (Outcome.BLOCKED, "own-listener")


async def test_a_listener_on_every_address_is_no_target_by_any_address_of_this_machine() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if probe.connect_ex(("192.0.2.1", 9)):
            pytest.skip("this machine has no address but loopback")
        address = probe.getsockname()[0]
    assert is_this_machine(address)
    assert not is_this_machine("192.0.2.1")
    for own, error in (
        (OwnListeners([("0.0.0.0", 1)]), "own-listener"),
        (OwnListeners([("127.0.0.1", 1)]), "ClientConnectorError"),
    ):
        assert (await asked(own, f"http://{address}:1/check")).error == error
