"""Prepare, local transaction, end: in this order, over real HTTP."""

from threading import get_ident

import pytest

from outbox_client import (
    Check,
    LocalTransactionState,
    Message,
    PreparedMessage,
    PrepareFailed,
    TransactionProducer,
)
from tests.integration.client.fixtures_contract_server import (
    ContractService,
    Fault,
    Half,
    fault,
)
from tests.integration.client.fixtures_producers import OpenProducer, thread_of

COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK
UNKNOWN = LocalTransactionState.UNKNOWN


class LocalTransaction:
    """Returns or raises a given result, and records its argument and its thread."""

    def __init__(self, outcome: object = COMMIT) -> None:
        self.outcome = outcome
        self.ran_with: list[PreparedMessage] = []
        self.ran_in: list[int] = []

    def __call__(self, prepared: PreparedMessage) -> LocalTransactionState | None:
        self.ran_with.append(prepared)
        self.ran_in.append(get_ident())
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome  # type: ignore[return-value]


class Listener:
    """A producer's listener."""

    def __init__(self) -> None:
        self.executed: list[PreparedMessage] = []

    def execute_local_transaction(
        self, message: PreparedMessage, /
    ) -> LocalTransactionState | None:
        self.executed.append(message)
        return ROLLBACK

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState | None:
        return None


def only_half(service: ContractService) -> Half:
    assert len(service.halves) == 1
    return next(iter(service.halves.values()))


def test_a_failed_local_transaction_rolls_the_message_back(
    service: ContractService, producer: TransactionProducer
) -> None:
    result = producer.send_in_transaction(Message("invoices", "v"), LocalTransaction(ROLLBACK))
    assert only_half(service).state == result.state == "ROLLED_BACK"


@pytest.mark.parametrize("returned", [None, UNKNOWN, "nonsense", True])
def test_none_and_invalid_values_mean_unknown_and_decide_nothing(
    service: ContractService, producer: TransactionProducer, returned: object
) -> None:
    result = producer.send_in_transaction(Message("invoices", "v"), LocalTransaction(returned))
    assert (result.local_state, result.state, result.end_delivered) == (UNKNOWN, "PREPARED", True)
    assert only_half(service).decision is None


def test_the_message_is_prepared_before_the_local_transaction_runs_where_it_was_called(
    service: ContractService, producer: TransactionProducer
) -> None:
    local = LocalTransaction()
    producer.send_in_transaction(Message("invoices", "v"), local)
    assert local.ran_with[0].message_id == only_half(service).message_id
    assert local.ran_in == [thread_of(producer)]


def test_an_exception_ends_with_unknown_and_propagates_unchanged(
    service: ContractService, producer: TransactionProducer
) -> None:
    failure = LookupError("balance")
    with pytest.raises(LookupError) as caught:
        producer.send_in_transaction(Message("invoices", "v"), LocalTransaction(failure))
    assert caught.value is failure
    assert service.requests[-1][2] == {"decision": "UNKNOWN"}
    assert only_half(service).decision is None


def test_without_a_callable_the_listener_runs_the_local_transaction(
    service: ContractService, service_url: str, open_producer: OpenProducer
) -> None:
    listener = Listener()
    with open_producer(service_url, "billing", listener=listener) as producer:
        producer.send_in_transaction(Message("invoices", "v"))
    assert [prepared.message.value for prepared in listener.executed] == ["v"]
    assert only_half(service).decision == "ROLLBACK"


def test_a_failed_prepare_never_runs_the_local_transaction(
    service: ContractService, producer: TransactionProducer
) -> None:
    service.faults.append(fault(422, "unknown-topic"))
    local = LocalTransaction()
    with pytest.raises(PrepareFailed) as caught:
        producer.send_in_transaction(Message("invoices", "v", transaction_id="i-7"), local)
    assert (caught.value.transaction_id, caught.value.retryable) == ("i-7", False)
    assert getattr(caught.value.__cause__, "code", None) == "unknown-topic"
    assert local.ran_with == []


def test_an_answer_for_another_message_runs_no_local_transaction(
    service: ContractService, producer: TransactionProducer
) -> None:
    """As a proxy gives it that mixes up two answers."""
    other = producer.prepare(Message("invoices", "v"))
    members = {"producer_group": "billing", "topic": "invoices", "state": "PREPARED"}
    at = "2026-09-21T14:13:26Z"
    members |= {"message_id": other.message_id, "prepared_at": at, "next_check_at": at}
    service.faults.append(Fault(201, {**members, "transaction_id": other.transaction_id}))
    local = LocalTransaction()
    with pytest.raises(PrepareFailed, match="another message"):
        producer.send_in_transaction(Message("invoices", "w"), local)
    assert local.ran_with == []


def test_a_repeated_message_that_is_undecided_runs_its_local_transaction(
    service: ContractService, producer: TransactionProducer
) -> None:
    message = Message("invoices", "v")
    producer.prepare(message)
    local = LocalTransaction()
    producer.send_in_transaction(message, local)
    assert local.ran_with[0].replayed
    assert only_half(service).decision == "COMMIT"
