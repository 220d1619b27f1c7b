"""Calls of one event loop share a timer, and each keeps its own time limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from outbox_client import (
    AsyncTransactionProducer,
    LocalTransactionState,
    Message,
    ServiceUnreachable,
)
from outbox_client.async_client import CALLS_AT_ONCE
from outbox_client.calls.async_shared_requests import AsyncSharedRequests
from outbox_client.calls.async_transport import AsyncTransport
from outbox_client.calls.protocol import Answer
from outbox_client.calls.request_queue import REQUESTS_UNDER_WAY
from outbox_client.calls.shared_items import PREPARE, shared_prepare
from outbox_client.errors import MessageNotFound
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_contract_server import ContractService

LONG = 120.0
NOT_PREPARED = "01900000-0000-7000-8000-000000000000"


@asynccontextmanager
async def silent_service(service: ContractService, url: str) -> AsyncIterator[AsyncSharedRequests]:
    """Yield requests that get no answer before ``release`` is set."""
    service.release.clear()
    transport = AsyncTransport(url, None)
    requests = AsyncSharedRequests(transport)
    try:
        yield requests
    finally:
        service.release.set()
        await requests.close()
        await transport.close()


async def prepare(requests: AsyncSharedRequests, seconds: float) -> Answer:
    return await requests.exchange(shared_prepare("billing", Message("invoices", "v")), seconds)


async def test_a_call_with_less_time_than_those_before_it_ends_in_its_own_time(
    service: ContractService, service_url: str
) -> None:
    """It waits for one of their requests to end."""
    async with silent_service(service, service_url) as requests:
        patient = []
        for _ in range(REQUESTS_UNDER_WAY):
            patient.append(asyncio.create_task(prepare(requests, LONG)))
            await asyncio.to_thread(wait_for, lambda: len(service.requests) == len(patient))
        for _ in range(2):
            async with asyncio.timeout(LONG / 2):
                with pytest.raises(ServiceUnreachable):
                    await prepare(requests, 0.1)
        service.release.set()
        assert [answer.status for answer in await asyncio.gather(*patient)] == [201, 201]


async def test_prepares_beyond_a_bound_wait_for_a_turn_and_an_end_does_not_wait_behind_them(
    service: ContractService, service_url: str
) -> None:
    """All at once, the last would have used up their time before they were sent."""
    service.release.clear()
    async with AsyncTransactionProducer(service_url, "billing", timeout=LONG) as producer:
        queue = producer._shared[PREPARE]
        messages = [Message("invoices", str(number)) for number in range(CALLS_AT_ONCE + 100)]
        calls = asyncio.gather(*map(producer.prepare, messages))
        await asyncio.to_thread(wait_for, lambda: service.requests)
        assert 0 < queue.waiting() <= CALLS_AT_ONCE
        end = asyncio.create_task(producer.end(NOT_PREPARED, LocalTransactionState.COMMIT))
        await asyncio.to_thread(wait_for, lambda: service.requests[-1][0].endswith("/end"))
        service.release.set()
        with pytest.raises(MessageNotFound):
            await end
        assert len({each.message_id for each in await calls}) == len(messages)
