"""The conformance cases, sent from the page of a group, with the result in words."""

from __future__ import annotations

import pytest

from api.admin import check_endpoint_probe
from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from outbox_client import Check, CheckEndpoint, LocalTransactionState
from tests.integration.api.console.fixtures_console import logged_in
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, Service
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.client.checks.fixtures_check_servers import wsgi_server

pytestmark = pytest.mark.postgres

WRITER = (Scope.GROUPS_READ, Scope.GROUPS_WRITE)
AT = "/ui/groups/paying"


class Listener:
    """Knows one transaction."""

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        """Answer a check."""
        known = check.transaction_id == "known"
        return LocalTransactionState.COMMIT if known else LocalTransactionState.UNKNOWN


async def register(service: Service, url: str, **fields: object) -> None:
    """Give the group another endpoint."""
    body = {"check_url": url, **fields}
    answer = await service.client.put(f"{GROUPS}/paying", json=body, headers={"if-match": "*"})
    assert answer.status_code == 200, answer.text


async def test_an_endpoint_that_keeps_the_contract_passes_every_case(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, *WRITER) as (service, browser):
        secret = (await service.put_group("paying")).json()["check_secret"]
        with (
            CheckEndpoint("paying", secret, Listener()) as endpoint,
            wsgi_server(endpoint) as url,
        ):
            await register(service, url, batch_check=True)
            page = await browser.get(AT)
            simulated = await browser.send(page, f"{AT}/simulate", transaction_id="known")
        assert "All 15 cases passed." in simulated.text
        assert "a known transaction is decided; " in simulated.text
        assert "a batch of 100 is answered" in simulated.text
        assert "POST /v1/producer-groups/paying/simulate" in simulated.text
        assert f"outbox check simulate --url {url} --group paying" in simulated.text
        assert await stored(pool) == (0, 0, 0, 0)


async def test_an_endpoint_that_verifies_nothing_is_told_so_case_by_case(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, *WRITER) as (service, browser):
        async with Producer(says("COMMIT")) as producer:
            await service.put_group("paying", check_url=producer.url)
            page = await browser.send(await browser.get(AT), f"{AT}/simulate")
        assert page.status == 200
        assert "11 of 12 cases did not pass." in page.text
        assert "a forged signature is refused : expected 401, got 200" in page.text
        assert (
            "an unknown transaction is never COMMIT : expected ROLLBACK or UNKNOWN, the service"
            " reads commit" in page.text
        )
        assert "Passed: two signatures, the second fits." in page.text


async def test_what_cannot_be_sent_has_not_passed(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with logged_in(database_url, pool, *WRITER) as (service, browser):
        async with Producer(says("UNKNOWN")) as producer:
            await service.put_group("paying", check_url=producer.url)
            monkeypatch.setattr(check_endpoint_probe, "SIMULATION_SECONDS", 0)
            late = await browser.send(await browser.get(AT), f"{AT}/simulate")
            monkeypatch.undo()
        dead = await browser.send(await browser.get(AT), f"{AT}/simulate")
        assert "12 of 12 cases did not pass." in late.text
        assert "Each of them : not sent: 0 s are over" in late.text
        assert "12 of 12 cases did not pass." in dead.text
        assert "not sent: the endpoint is unreachable" in dead.text


async def test_a_simulation_needs_the_scope(database_url: str, pool: Pool) -> None:
    reader = logged_in(database_url, pool, Scope.GROUPS_READ)
    async with reader as (service, browser):
        await service.put_group("paying")
        page = await browser.get(AT)
        assert "Your key needs the scope groups:write." in page.text
        assert (await browser.send(page, f"{AT}/simulate")).status == 403


async def test_a_simulation_needs_the_group_and_the_token_of_the_form(
    database_url: str, pool: Pool
) -> None:
    bound = logged_in(database_url, pool, *WRITER, groups=("billing",))
    async with bound as (service, browser):
        await service.put_group("paying")
        fields = (await browser.get("/ui/groups/billing")).forms()["/ui/groups/billing/simulate"]
        assert (await browser.client.post(f"{AT}/simulate", data=fields)).status_code == 404
        fields.pop("csrf")
        own = await browser.client.post("/ui/groups/billing/simulate", data=fields)
        assert own.status_code == 403
