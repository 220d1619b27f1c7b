"""Concurrent calls share requests over real HTTP, and each has its own result and errors."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from outbox_client import (
    LocalTransactionState,
    Message,
    OutboxError,
    PreparedMessage,
    TransactionProducer,
)
from outbox_client.calls import transport
from outbox_client.calls.request_queue import REQUESTS_UNDER_WAY
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_contract_server import (
    ContractService,
)
from tests.integration.client.fixtures_producers import OpenProducer, calls_waiting

COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK
COMPANY = 9


@contextmanager
def requests_under_way(
    service: ContractService, producer: TransactionProducer
) -> Iterator[ThreadPoolExecutor]:
    """Keep every request of the prepares under way until the block ends; no more may start."""
    service.release.clear()
    with ThreadPoolExecutor(REQUESTS_UNDER_WAY + COMPANY) as threads:
        try:
            for number in range(REQUESTS_UNDER_WAY):
                threads.submit(producer.prepare, Message("early", str(number)))
                wait_for_requests(service, number + 1)
            yield threads
        finally:
            service.release.set()


def wait_for_requests(service: ContractService, count: int) -> None:
    wait_for(lambda: len(service.requests) == count, every=0.002)


def prepared_together(
    service: ContractService, producer: TransactionProducer, messages: Sequence[Message]
) -> list[PreparedMessage | OutboxError]:
    """Prepare each message in a thread of its own; all of them wait for the same request."""
    with requests_under_way(service, producer) as threads:
        calls: list[Future[PreparedMessage]] = []
        for message in messages:
            calls.append(threads.submit(producer.prepare, message))
            wait_for(lambda: calls_waiting(producer) == len(calls), every=0.002)
        service.requests.clear()
    return [outcome_of(call) for call in calls]


def outcome_of(call: Future[PreparedMessage]) -> PreparedMessage | OutboxError:
    error = call.exception()
    if error is None:
        return call.result()
    assert isinstance(error, OutboxError)
    return error


def make_messages(count: int = COMPANY) -> list[Message]:
    return [Message("invoices", str(number)) for number in range(count)]


def sizes_of(service: ContractService) -> list[int]:
    """Return the number of items of each request; 1 for a single call."""
    return [len(items) for items in service.sent()]


def test_calls_that_come_during_a_request_share_the_next_and_each_gets_its_own_half(
    service: ContractService, producer: TransactionProducer
) -> None:
    prepared = prepared_together(service, producer, make_messages())
    assert sizes_of(service) == [COMPANY]
    halves = [service.halves[p.message_id] for p in prepared if isinstance(p, PreparedMessage)]
    assert [half.content["value"] for half in halves] == [str(n) for n in range(COMPANY)]


def test_ends_that_wait_for_kafka_keep_no_connection_from_other_calls(
    service: ContractService,
    service_url: str,
    open_producer: OpenProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While Kafka is down each of them holds a connection for as long as it waits."""
    monkeypatch.setattr(transport, "CONNECTIONS_MAX", 2)
    with open_producer(service_url, "billing", timeout=3.0) as producer:
        prepared = [producer.prepare(message) for message in make_messages(3)]
        service.requests.clear()
        service.kafka.clear()
        with ThreadPoolExecutor(2) as threads:
            waiting, other = [p.message_id for p in prepared[:2]], prepared[2].message_id
            ends = [threads.submit(producer.end, each, COMMIT, wait=30) for each in waiting]
            wait_for_requests(service, 2)
            try:
                assert producer.prepare(Message("invoices", "v")).state == "PREPARED"
                assert producer.end(other, COMMIT).state == "COMMITTED"
            finally:
                service.kafka.set()
    assert {end.result().state for end in ends} == {"COMMITTED"}
