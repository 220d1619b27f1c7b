"""The need for the barrier: a check during a paused local transaction.

The local transaction has paid and is about to commit when the check-back arrives. A simple look-up
would find no payment and answer ROLLBACK, and then the payment would commit: money without points.
The barrier's answer makes the late commit fail.
"""

import psycopg
import pytest

from outbox_client import (
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

BARRIER = PsycopgBarrier()


@pytest.fixture
def database(local_database: str) -> str:
    with psycopg.connect(local_database, autocommit=True) as connection:
        BARRIER.create_table(connection)
        connection.execute("CREATE TABLE payment (transaction_id text PRIMARY KEY)")
    return local_database


class BarrierLookup:
    """Answers what the barrier proves."""

    def __init__(self, database: str) -> None:
        self.database = database

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        with psycopg.connect(self.database, autocommit=True) as connection:
            return BARRIER.check(connection, check)


def payments(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM payment").fetchone()
    return int(row[0]) if row else 0


def check_back(service: ContractService, database: str, message_id: str) -> None:
    """Send a check and read the verdict as the service's checker does."""
    body = single(make_check(message_id))
    with CheckEndpoint(GROUP, SECRET, BarrierLookup(database)) as endpoint:
        reply = endpoint.handle(signed_headers(body), body)
    assert b'"ROLLBACK"' in reply.body
    service.halves[message_id].decide("ROLLBACK", "check")


def test_after_the_fence_the_late_local_commit_fails(
    service: ContractService, producer: TransactionProducer, database: str
) -> None:
    def pay_slowly(prepared: PreparedMessage) -> LocalTransactionState:
        with psycopg.connect(database) as connection:
            connection.execute("INSERT INTO payment VALUES (%s)", (prepared.transaction_id,))
            check_back(service, database, prepared.message_id)
            BARRIER.record(connection, prepared)
        return LocalTransactionState.COMMIT

    with pytest.raises(TransactionFenced):
        producer.send_in_transaction(Message("points", "100"), pay_slowly)
    assert [half.state for half in service.halves.values()] == ["ROLLED_BACK"]
    assert payments(database) == 0
