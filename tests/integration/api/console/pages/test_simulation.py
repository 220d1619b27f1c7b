"""The conformance cases, sent from the page of a group, with the result in words."""

from __future__ import annotations

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from outbox_client import Check, CheckEndpoint, LocalTransactionState
from tests.integration.api.console.fixtures_console import logged_in
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, Service
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
        assert await stored(pool) == (0, 0, 0, 0)
