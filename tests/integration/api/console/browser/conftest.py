"""The operator in front of a browser: one service, one database and one browser for a module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.integration.api.console.browser.fixtures_desk import Desk, sitting

NO_BROKER = "127.0.0.1:9"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_desk(module_database: str) -> AsyncIterator[Desk]:
    """Yield an operator who is logged in."""
    async with sitting(module_database, kafka_bootstrap_servers=NO_BROKER) as desk:
        yield desk


@pytest.fixture
def desk(module_desk: Desk) -> Iterator[Desk]:
    """Yield the operator; afterwards no page may have complained, or asked another host."""
    module_desk.tab.complaints.clear()
    module_desk.tab.requested.clear()
    yield module_desk
    assert module_desk.tab.complaints == []
    elsewhere = [
        each
        for each in module_desk.tab.requested
        if not each.startswith((module_desk.origin, "http://localhost:", "about:"))
    ]
    assert elsewhere == []
