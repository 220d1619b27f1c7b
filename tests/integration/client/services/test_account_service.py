"""The account service of the examples: it pays and publishes, both or neither."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from sqlalchemy import Engine, create_engine, text

from examples.account_service.demo_switches import DemoSwitch, EndLost, fail_after_commit
from examples.account_service.purchases import Outcome, Purchase, Purchases
from examples.account_service.tables import create_tables
from outbox_client import TransactionProducer
from outbox_client.sqlalchemy import SqlAlchemyBarrier
from tests.integration.client.fixtures_contract_server import ContractService
from tests.integration.client.fixtures_prepared import make_check

pytestmark = pytest.mark.postgres

GROUP = "billing"
RICH, POOR = "member-rich", "member-poor"


@pytest.fixture
def engine(local_database: str) -> Iterator[Engine]:
    engine = create_engine(local_database.replace("postgresql:", "postgresql+psycopg:"))
    create_tables(engine, {RICH: 10_000, POOR: 0})
    SqlAlchemyBarrier().create_table(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def purchases(engine: Engine) -> Purchases:
    return Purchases(engine, SqlAlchemyBarrier(), review_above=1_000)


def nothing() -> None:
    """Do nothing between commit and end."""


def balance(engine: Engine, member: str = RICH) -> int:
    with engine.connect() as db:
        found = db.scalar(text("SELECT balance FROM account WHERE member = :m"), {"m": member})
    return int(found)


def decisions(service: ContractService) -> list[str | None]:
    return [half.decision for half in service.halves.values()]


def check_back(purchases: Purchases, service: ContractService) -> str:
    half = next(iter(service.halves.values()))
    check = make_check(half.message_id, GROUP)
    named = replace(check, transaction_id=str(half.content["transaction_id"]))
    return str(purchases.check_local_transaction(named))


def test_a_purchase_takes_the_money_and_commits_the_message(
    service: ContractService, producer: TransactionProducer, purchases: Purchases, engine: Engine
) -> None:
    assert purchases.buy(producer, Purchase("p1", RICH, 100), nothing) == Outcome.PAID
    assert balance(engine) == 9_900
    assert decisions(service) == ["COMMIT"]


def test_without_enough_money_the_message_is_rolled_back(
    service: ContractService, producer: TransactionProducer, purchases: Purchases, engine: Engine
) -> None:
    assert purchases.buy(producer, Purchase("p1", POOR, 100), nothing) == Outcome.REFUSED
    assert balance(engine, POOR) == 0
    assert decisions(service) == ["ROLLBACK"]


def lose_end(purchases: Purchases, producer: TransactionProducer) -> None:
    with suppress(EndLost):
        purchases.buy(
            producer,
            Purchase("p1", RICH, 100),
            lambda: fail_after_commit(DemoSwitch.LOSE_THE_END),
        )


def test_a_lost_end_is_answered_commit_by_the_barrier(
    service: ContractService, producer: TransactionProducer, purchases: Purchases, engine: Engine
) -> None:
    lose_end(purchases, producer)
    assert (balance(engine), decisions(service)) == (9_900, [None])
    assert check_back(purchases, service) == "COMMIT"


def test_a_purchase_that_never_paid_is_fenced(
    service: ContractService, producer: TransactionProducer, purchases: Purchases, engine: Engine
) -> None:
    purchase = Purchase("p1", RICH, 100)
    producer.prepare(purchase.message())
    assert check_back(purchases, service) == "ROLLBACK"
    assert purchases.buy(producer, purchase, nothing) == Outcome.REFUSED
    assert balance(engine) == 10_000


@pytest.mark.parametrize(
    ("approved", "outcome", "left", "decision"),
    [(True, Outcome.PAID, 5_000, "COMMIT"), (False, Outcome.REFUSED, 10_000, "ROLLBACK")],
)
def test_a_purchase_under_review_is_unknown_until_the_reviewer_decides(
    service: ContractService,
    producer: TransactionProducer,
    purchases: Purchases,
    engine: Engine,
    approved: bool,
    outcome: Outcome,
    left: int,
    decision: str,
) -> None:
    assert purchases.buy(producer, Purchase("p1", RICH, 5_000), nothing) == Outcome.IN_REVIEW
    assert check_back(purchases, service) == "UNKNOWN"
    next(iter(service.halves.values())).state = "PARKED"
    assert purchases.close_review(producer, "p1", approved=approved) == outcome
    assert (balance(engine), decisions(service)) == (left, [decision])
