"""The database of the account service: balances, payments, and purchases under review."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import insert

metadata = MetaData()

account = Table(
    "account",
    metadata,
    Column("member", Text, primary_key=True),
    Column("balance", Integer, CheckConstraint("balance >= 0"), nullable=False),
)

payment = Table(
    "payment",
    metadata,
    Column("purchase_id", Text, primary_key=True),
    Column("member", Text, ForeignKey("account.member"), nullable=False),
    Column("amount", Integer, CheckConstraint("amount > 0"), nullable=False),
    Column("message_id", Text, nullable=False),
)

review = Table(
    "review",
    metadata,
    Column("purchase_id", Text, primary_key=True),
    Column("member", Text, nullable=False),
    Column("amount", Integer, nullable=False),
    Column("transaction_id", Text, nullable=False, unique=True),
)


def create_tables(engine: Engine, balances: dict[str, int]) -> None:
    """Create the tables and open an account for each member, where they are missing."""
    metadata.create_all(engine)
    rows = [{"member": member, "balance": balance} for member, balance in balances.items()]
    with engine.begin() as db:
        db.execute(insert(account).on_conflict_do_nothing(), rows)
