"""The single and batch calls: which errors are retried, and for how long."""

from threading import Event, Thread

import pytest

from outbox_client import (
    Ending,
    LocalTransactionState,
    Message,
    OutboxError,
    PreparedMessage,
    TransactionProducer,
)
from outbox_client.errors import (
    MessageNotFound,
)
from tests.integration.client.fixtures_contract_server import (
    LOSE_ANSWER,
    ContractService,
    fault,
)
from tests.integration.client.fixtures_producers import OpenProducer

COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK


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


def test_a_batch_returns_the_result_of_each_item_in_order(
    service: ContractService, producer: TransactionProducer
) -> None:
    service.item_faults.extend([None, fault(422, "unknown-topic"), None])
    results = producer.prepare_batch([Message("invoices", str(number)) for number in range(3)])
    assert [getattr(result, "code", "ok") for result in results] == ["ok", "unknown-topic", "ok"]
    values = [service.halves[p.message_id].content["value"] for p in prepared_in(results)]
    assert values == ["0", "2"]


def test_only_the_items_that_may_pass_later_are_sent_again(
    service: ContractService, producer: TransactionProducer
) -> None:
    busy, refused = fault(503, "database-unavailable"), fault(422, "unknown-topic")
    service.item_faults.extend([None, busy, refused])
    results = producer.prepare_batch([Message("invoices", str(number)) for number in range(3)])
    assert len(prepared_in(results)) == 2
    assert [len(body["items"]) for _, _, body in service.requests] == [3, 1]  # type: ignore[arg-type]


def test_an_end_batch_decides_each_item_separately(
    service: ContractService, producer: TransactionProducer
) -> None:
    prepared = prepared_in(producer.prepare_batch([Message("invoices", "v") for _ in range(3)]))
    first, second, third = (item.message_id for item in prepared)
    producer.end(second, ROLLBACK)
    results = producer.end_batch(
        [Ending(first, COMMIT), Ending(second, COMMIT), Ending("nobody", COMMIT)]
    )
    assert [getattr(result, "code", "ok") for result in results] == [
        "ok",
        "already-ended",
        "message-not-found",
    ]
    assert isinstance(results[2], MessageNotFound)
    assert service.halves[third].decision is None
