"""Purchases: one local transaction takes the money and records the message in the barrier.

A buyer may send a purchase twice at once. Both attempts have one message, so they must not decide
it differently: each locks the account, or the review, before it looks what the other has done.

``Purchases`` is also the listener: it answers a check of a purchase from the barrier, which fences
a payment that has not happened yet. A purchase under review is UNKNOWN.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, Engine, delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from examples.account_service.tables import account, payment, review
from outbox_client import (
    AlreadyEnded,
    Check,
    LocalTransactionState,
    Message,
    PreparedMessage,
    TransactionFenced,
    TransactionProducer,
)
from outbox_client.sqlalchemy import SqlAlchemyBarrier

TOPIC = "points-earned"

COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK
UNKNOWN = LocalTransactionState.UNKNOWN


class Outcome(StrEnum):
    """The result that the buyer gets."""

    PAID = "paid"
    REFUSED = "refused"
    IN_REVIEW = "in_review"


@dataclass(frozen=True, slots=True)
class Purchase:
    """One purchase; its id comes from the shop, so a repeated request buys once."""

    purchase_id: str
    member: str
    amount: int

    @property
    def transaction_id(self) -> str:
        """The name of the local transaction, the same on every attempt."""
        return f"purchase-{self.purchase_id}"

    def message(self) -> Message:
        """Return the event to publish if the payment happens."""
        value = {"purchase_id": self.purchase_id, "member": self.member, "points": self.amount}
        return Message(
            TOPIC,
            json.dumps(value),
            key=self.member,
            content_type="application/json",
            transaction_id=self.transaction_id,
        )


class Purchases:
    """The use cases of the account service, and its answers to check-backs."""

    def __init__(self, engine: Engine, barrier: SqlAlchemyBarrier, review_above: int) -> None:
        self._engine = engine
        self._barrier = barrier
        self._review_above = review_above

    def buy(
        self,
        producer: TransactionProducer,
        purchase: Purchase,
        after_commit: Callable[[], None],
    ) -> Outcome:
        """Pay and publish the message, both or neither; ``after_commit`` runs between the two."""

        def local_transaction(prepared: PreparedMessage) -> LocalTransactionState:
            if purchase.amount > self._review_above:
                return self._ask_reviewer(purchase)
            state = self._pay(purchase, prepared)
            if state is COMMIT:
                after_commit()
            return state

        try:
            sent = producer.send_in_transaction(purchase.message(), local_transaction)
        except AlreadyEnded as ended:
            return Outcome.PAID if ended.winning_decision == COMMIT else Outcome.REFUSED
        except TransactionFenced:
            return Outcome.REFUSED
        return _OUTCOMES[sent.local_state]

    def close_review(
        self, producer: TransactionProducer, purchase_id: str, *, approved: bool
    ) -> Outcome | None:
        """Pay for, or refuse, a purchase under review and end its message; None if unknown."""
        purchase = self._under_review(purchase_id)
        if purchase is None:
            return None
        prepared = producer.prepare(purchase.message())
        state = self._review(purchase, prepared, approved=approved)
        if state is None:
            return None
        producer.end(prepared.message_id, state, reason="reviewed")
        return _OUTCOMES[state]

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        """Answer a check-back: UNKNOWN under review, otherwise from the barrier."""
        with self._engine.connect() as db:
            mine = review.c.transaction_id == check.transaction_id
            waiting = db.scalar(select(review.c.purchase_id).where(mine))
        return UNKNOWN if waiting else self._barrier.check(self._engine, check)

    def _pay(self, purchase: Purchase, prepared: PreparedMessage) -> LocalTransactionState:
        with self._engine.begin() as db:
            return self._pay_in(db, purchase, prepared)

    def _pay_in(
        self, db: Connection, purchase: Purchase, prepared: PreparedMessage
    ) -> LocalTransactionState:
        balance = _lock_balance(db, purchase.member)
        if _is_paid(db, purchase):
            return COMMIT
        if balance < purchase.amount:
            return ROLLBACK
        _take(db, purchase)
        row = {"purchase_id": purchase.purchase_id, "member": purchase.member}
        row |= {"message_id": prepared.message_id}
        db.execute(insert(payment).values(**row, amount=purchase.amount))
        self._barrier.record(db, prepared)
        return COMMIT

    def _review(
        self, purchase: Purchase, prepared: PreparedMessage, *, approved: bool
    ) -> LocalTransactionState | None:
        """Pay or refuse; None if another reviewer has decided."""
        with self._engine.begin() as db:
            mine = delete(review).where(review.c.purchase_id == purchase.purchase_id)
            if not db.execute(mine).rowcount:
                return None
            return self._pay_in(db, purchase, prepared) if approved else ROLLBACK

    def _ask_reviewer(self, purchase: Purchase) -> LocalTransactionState:
        row = {"purchase_id": purchase.purchase_id, "member": purchase.member}
        row |= {"transaction_id": purchase.transaction_id}
        with self._engine.begin() as db:
            statement = upsert(review).values(**row, amount=purchase.amount)
            db.execute(statement.on_conflict_do_nothing())
        return UNKNOWN

    def _under_review(self, purchase_id: str) -> Purchase | None:
        columns = (review.c.purchase_id, review.c.member, review.c.amount)
        with self._engine.connect() as db:
            row = db.execute(select(*columns).where(review.c.purchase_id == purchase_id)).first()
        return Purchase(*row) if row else None


_OUTCOMES = {COMMIT: Outcome.PAID, ROLLBACK: Outcome.REFUSED, UNKNOWN: Outcome.IN_REVIEW}


def _is_paid(db: Connection, purchase: Purchase) -> bool:
    paid = select(payment.c.purchase_id).where(payment.c.purchase_id == purchase.purchase_id)
    return db.scalar(paid) is not None


def _lock_balance(db: Connection, member: str) -> int:
    """Return the balance, which no other purchase changes before this transaction ends."""
    row = select(account.c.balance).where(account.c.member == member)
    return db.scalar(row.with_for_update()) or 0


def _take(db: Connection, purchase: Purchase) -> None:
    left = account.c.balance - purchase.amount
    db.execute(update(account).where(account.c.member == purchase.member).values(balance=left))
