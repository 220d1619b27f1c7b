"""The memory after a failed check call: no object that only the cycle collector frees."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from aiohttp import ClientSession, TCPConnector
from aiohttp.client_proto import ResponseHandler

from outbox.checks.answer import Outcome
from outbox.clock import SystemClock
from outbox.http_checks.endpoint import HttpCheckEndpoint
from tests.fixtures_messages import make_group
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED
from tests.integration.checker.fixtures_raw_endpoint import hostile_endpoint
from tests.unit.checker.checks.fixtures_queue_rows import make_row

CALLS = 5


@pytest.fixture
def no_search_for_cycles() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_search_for_cycles")
@pytest.mark.parametrize("name", ["endless_headers", "not_http", "cut_short"])
async def test_a_call_that_failed_keeps_no_connection_and_nothing_it_received(name: str) -> None:
    endpoint = HttpCheckEndpoint(LOOPBACK_ALLOWED)
    async with hostile_endpoint(name) as url:
        for _ in range(CALLS):
            group = make_group(check_url=url, check_timeout_seconds=5)
            (answer,) = await endpoint.ask(group, [make_row()], SystemClock().now())
            assert answer.outcome is Outcome.UNREACHABLE
        assert connections_in_memory() == 0


def connections_in_memory() -> int:
    """Count the connection objects of aiohttp, reachable or not."""
    return sum(
        isinstance(each, ResponseHandler | ClientSession | TCPConnector)
        for each in gc.get_objects()
    )
