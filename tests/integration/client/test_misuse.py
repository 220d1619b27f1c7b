"""A producer that is opened or used in a wrong way says so at once, and shows no secret."""

import asyncio

import pytest

from outbox_client import AsyncTransactionProducer, Message
from tests.integration.client.fixtures_contract_server import ContractService
from tests.integration.client.fixtures_producers import OpenProducer

SECRET = "obx_1a2b_secret"


@pytest.mark.parametrize("key", [f"{SECRET}\n", f" {SECRET}", f"{SECRET}é", f"{SECRET}\r\nx: y"])
def test_an_api_key_with_a_character_that_no_key_has_is_refused_and_not_shown(
    service: ContractService, service_url: str, open_producer: OpenProducer, key: str
) -> None:
    """Such as a key that was read from a file with its line end."""
    with pytest.raises(ValueError, match="line end") as refusal:
        open_producer(service_url, "billing", api_key=key)
    assert SECRET not in str(refusal.value)
    assert service.requests == []


@pytest.mark.parametrize(
    "url",
    ["localhost:8080", "", "ftp://127.0.0.1:1", "http://", "http://127.0.0.1:99999", "http://h/\n"],
)
def test_an_address_that_nobody_can_call_is_refused(url: str, open_producer: OpenProducer) -> None:
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8080"):
        open_producer(url, "billing")


def test_a_producer_of_another_event_loop_says_so_at_once(
    service: ContractService, service_url: str
) -> None:
    """Its connections belong to the first loop: without this error the call would never end."""
    producer = AsyncTransactionProducer(service_url, "billing")

    async def prepare_elsewhere() -> None:
        async with asyncio.timeout(60):
            with pytest.raises(RuntimeError, match="event loop"):
                await producer.prepare(Message("invoices", "second"))

    with asyncio.Runner() as first:
        first.run(producer.prepare(Message("invoices", "first")))
        asyncio.run(prepare_elsewhere())
        first.run(producer.close())
    assert len(service.requests) == 1
