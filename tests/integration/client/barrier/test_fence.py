"""The need for the barrier: a check during a paused local transaction, with and without it.

The local transaction has paid and is about to commit when the check-back arrives. A simple look-up
finds no payment and answers ROLLBACK; then the payment commits: money without points. With the
barrier the same answer makes the late commit fail.
"""

from collections.abc import Callable

import psycopg
import pytest

from outbox_client import (
    AlreadyEnded,
    Check,
    CheckEndpoint,
    LocalTransactionState,
    Message,
    PreparedMessage,
    TransactionFenced,
    TransactionProducer,
)
from outbox_client.psycopg import PsycopgBarrier
from tests.integration.client.fixtures_contract_server import ContractService
from tests.unit.outbox_client.fixtures_checks import (
    GROUP,
    SECRET,
    make_check,
    signed_headers,
    single,
)

pytestmark = pytest.mark.postgres

COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK
BARRIER = PsycopgBarrier()


@pytest.fixture
def database(local_database: str) -> str:
    with psycopg.connect(local_database, autocommit=True) as connection:
        BARRIER.create_table(connection)
        connection.execute("CREATE TABLE payment (transaction_id text PRIMARY KEY)")
    return local_database


class PlainLookup:
    """Answers the result of a look-up: the error that the barrier prevents."""

    def __init__(self, database: str) -> None:
        self.database = database

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        return COMMIT if payments(self.database) else ROLLBACK


class BarrierLookup(PlainLookup):
    """Answers what the barrier proves."""

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        with psycopg.connect(self.database, autocommit=True) as connection:
            return BARRIER.check(connection, check)


def payments(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM payment").fetchone()
    return int(row[0]) if row else 0


def check_back(service: ContractService, listener: PlainLookup, message_id: str) -> None:
    """Send a check and read the verdict as the service's checker does."""
    body = single(make_check(message_id))
    with CheckEndpoint(GROUP, SECRET, listener) as endpoint:
        reply = endpoint.handle(signed_headers(body), body)
    assert b'"ROLLBACK"' in reply.body
    service.halves[message_id].decide("ROLLBACK", "check")


def pay_slowly(
    database: str, pause: Callable[[PreparedMessage], None], *, record: bool
) -> Callable[[PreparedMessage], LocalTransactionState]:
    def local_transaction(prepared: PreparedMessage) -> LocalTransactionState:
        with psycopg.connect(database) as connection:
            connection.execute("INSERT INTO payment VALUES (%s)", (prepared.transaction_id,))
            pause(prepared)
            if record:
                BARRIER.record(connection, prepared)
        return COMMIT

    return local_transaction


def test_after_the_fence_the_late_local_commit_fails(
    service: ContractService, producer: TransactionProducer, database: str
) -> None:
    def pause(prepared: PreparedMessage) -> None:
        check_back(service, BarrierLookup(database), prepared.message_id)

    with pytest.raises(TransactionFenced):
        producer.send_in_transaction(
            Message("points", "100"), pay_slowly(database, pause, record=True)
        )
    assert [half.state for half in service.halves.values()] == ["ROLLED_BACK"]
    assert payments(database) == 0


def test_with_a_simple_lookup_the_payment_stays_and_the_message_is_lost(
    service: ContractService, producer: TransactionProducer, database: str
) -> None:
    def pause(prepared: PreparedMessage) -> None:
        check_back(service, PlainLookup(database), prepared.message_id)

    with pytest.raises(AlreadyEnded):
        producer.send_in_transaction(
            Message("points", "100"), pay_slowly(database, pause, record=False)
        )
    assert [half.state for half in service.halves.values()] == ["ROLLED_BACK"]
    assert payments(database) == 1, "the anomaly: paid, and no points ever"
