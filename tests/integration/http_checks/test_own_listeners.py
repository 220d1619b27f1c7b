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
from outbox.http_checks.guarded_connector import GuardedResolver
from outbox.http_checks.own_listeners import OwnListeners, database_places, is_this_machine
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.http_checks.fixtures_name_server import answer_names
from tests.integration.http_checks.fixtures_questions import ask

OPEN = policy_of(["0.0.0.0/0", "::/0"], [], ["1-65535"])


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


async def test_after_a_failover_the_new_address_is_no_target_and_the_old_one_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"db.test": ["192.0.2.1"], "check.test": ["127.0.0.1"]}
    answer_names(monkeypatch, names)
    async with Producer(says("COMMIT")) as producer:
        url = producer.url.replace("127.0.0.1", "check.test")
        own = OwnListeners([("db.test", producer.port)])
        async with HttpCheckEndpoint(GuardedResolver(OPEN, own)) as endpoint:
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
