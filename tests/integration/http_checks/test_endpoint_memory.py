"""What is left of a check call that failed: nothing that only Python's search for cycles frees."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from aiohttp.client_proto import ResponseHandler

from outbox.checks.check_round import Outcome, Question
from outbox.clock import SystemClock
from outbox.http_checks.endpoint import HttpCheckEndpoint
from tests.fixtures_messages import make_group
from tests.integration.checker import fixtures_hostile_endpoints
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED
from tests.unit.checker.checks.fixtures_queue_rows import make_half

CALLS = 5


@pytest.fixture
def no_search_for_cycles() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_search_for_cycles")
@pytest.mark.parametrize(
    "handler",
    [
        fixtures_hostile_endpoints.endless_headers,
        fixtures_hostile_endpoints.not_http,
        fixtures_hostile_endpoints.cut_short,
    ],
    ids=lambda each: each.__name__,
)
async def test_a_call_that_failed_keeps_no_connection_and_nothing_it_received(
    handler: fixtures_hostile_endpoints.Handler,
) -> None:
    question = Question(half=make_half(), round=1, attempt=1, max_attempts=15)
    async with (
        fixtures_hostile_endpoints.raw_endpoint(handler) as url,
        HttpCheckEndpoint(LOOPBACK_ALLOWED) as endpoint,
    ):
        for _ in range(CALLS):
            group = make_group(check_url=url, check_timeout_seconds=5)
            (answer,) = await endpoint.ask(group, [question], SystemClock().now())
            assert answer.outcome is Outcome.UNREACHABLE
        assert connections_in_memory() == 0


def connections_in_memory() -> int:
    """Count what aiohttp keeps of connections, whether or not anybody can reach it."""
    return sum(isinstance(each, ResponseHandler) for each in gc.get_objects())
