"""The single and batch calls: what is sent again, and what a call that waits keeps from others."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest

from outbox_client import (
    LocalTransactionState,
    Message,
    OutboxError,
    PreparedMessage,
    TransactionProducer,
)
from outbox_client.calls import transport
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_contract_server import (
    LOSE_ANSWER,
    ContractService,
    fault,
)
from tests.integration.client.fixtures_producers import OpenProducer

COMMIT = LocalTransactionState.COMMIT


def test_an_end_whose_answer_was_lost_finds_its_own_decision(
    service: ContractService, producer: TransactionProducer
) -> None:
    prepared = producer.prepare(Message("invoices", "v"))
    service.faults.append(LOSE_ANSWER)
    ended = producer.end(prepared.message_id, COMMIT)
    assert (ended.already_ended, ended.decision) == (True, COMMIT)


def test_closing_the_producer_ends_a_call_that_waits_for_its_next_attempt(
    service: ContractService, service_url: str, open_producer: OpenProducer
) -> None:
    service.faults.append(fault(503, "database-unavailable", retry_after="20"))
    producer = open_producer(service_url, "billing", timeout=30.0)
    failed = Event()

    def prepare() -> None:
        with pytest.raises(OutboxError):
            producer.prepare(Message("invoices", "v"))
        failed.set()

    thread = Thread(target=prepare)
    thread.start()
    while not service.requests:
        failed.wait(0.01)
    producer.close()
    assert failed.wait(5)
    thread.join()


def prepared_in(results: list[PreparedMessage | OutboxError]) -> list[PreparedMessage]:
    return [result for result in results if isinstance(result, PreparedMessage)]


def test_only_the_items_that_may_pass_later_are_sent_again(
    service: ContractService, producer: TransactionProducer
) -> None:
    busy, refused = fault(503, "database-unavailable"), fault(422, "unknown-topic")
    service.item_faults.extend([None, busy, refused])
    results = producer.prepare_batch([Message("invoices", str(number)) for number in range(3)])
    assert len(prepared_in(results)) == 2
    assert [len(body["items"]) for _, _, body in service.requests] == [3, 1]  # type: ignore[arg-type]


def test_ends_that_wait_for_kafka_keep_no_connection_from_other_calls(
    service: ContractService,
    service_url: str,
    open_producer: OpenProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While Kafka is down each of them holds a connection for as long as it waits."""
    monkeypatch.setattr(transport, "CONNECTIONS_MAX", 2)
    with open_producer(service_url, "billing", timeout=3.0) as producer:
        prepared = [producer.prepare(Message("invoices", "v")) for _ in range(3)]
        service.requests.clear()
        service.kafka.clear()
        with ThreadPoolExecutor(2) as threads:
            waiting, other = [p.message_id for p in prepared[:2]], prepared[2].message_id
            ends = [threads.submit(producer.end, each, COMMIT, wait=30) for each in waiting]
            wait_for(lambda: len(service.requests) == 2)
            try:
                assert producer.prepare(Message("invoices", "v")).state == "PREPARED"
                assert producer.end(other, COMMIT).state == "COMMITTED"
            finally:
                service.kafka.set()
    assert {end.result().state for end in ends} == {"COMMITTED"}
