"""The tables that composed queries read or write, in SQLAlchemy's form.

The migrations define the schema; a test ensures that these tables equal the migrated ones. All
other statements are SQL files beside their module.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from outbox.operators.activity import COUNTS

METADATA: Final = MetaData(
    schema="outbox",
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    },
)

TIME: Final = DateTime(timezone=True)


def needed(name: str, kind: Any, **options: Any) -> Column[Any]:
    """Return a column that is NOT NULL."""
    return Column(name, kind, nullable=False, **options)


topic = Table(
    "topic",
    METADATA,
    Column("id", Integer, primary_key=True),
    needed("name", Text, unique=True),
    needed("created_at", TIME),
    Column("partitions", Integer),
    Column("max_message_bytes", Integer),
    Column("may_write", Boolean),
    Column("compacted", Boolean),
)

producer_group = Table(
    "producer_group",
    METADATA,
    Column("id", Integer, primary_key=True),
    needed("name", Text, unique=True),
    needed("check_url", Text),
    needed("check_interval_seconds", Integer),
    needed("check_max", Integer),
    needed("check_timeout_seconds", Integer),
    needed("transaction_timeout_seconds", Integer),
    needed("on_check_max", Text),
    needed("backoff", Text),
    needed("max_inflight", Integer),
    needed("batch_check", Boolean),
    needed("check_payload", Boolean),
    needed("topics", ARRAY(Text)),
    needed("max_age_seconds", Integer),
    needed("paused", Boolean),
    Column("pause_reason", Text),
    Column("paused_at", TIME),
    Column("paused_by", Text),
    needed("secret", LargeBinary),
    needed("secret_changed_at", TIME),
    needed("previous_secrets", ARRAY(LargeBinary)),
    needed("previous_expire_at", ARRAY(TIME)),
    needed("version", Integer),
    needed("created_at", TIME),
    needed("updated_at", TIME),
    Column("deleted_at", TIME),
)

half_message = Table(
    "half_message",
    METADATA,
    Column("half_id", BigInteger, primary_key=True, autoincrement=False),
    needed("nonce", BigInteger),
    needed("prepared_at", TIME),
    needed("content_digest", BigInteger),
    needed("producer_group_id", Integer),
    needed("topic_id", Integer),
    Column("partition", Integer),
    Column("check_immunity_seconds", Integer),
    Column("transaction_id", Text),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", ARRAY(LargeBinary)),
    Column("content_type", Text),
    Column("traceparent", Text),
    Column("tags", ARRAY(Text)),
    Column("key_id", Text),
    Column("followers", ARRAY(BigInteger)),
    Column("leader_id", BigInteger),
)

transaction_key = Table(
    "transaction_key",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True),
    Column("transaction_id", Text, primary_key=True),
    needed("half_id", BigInteger),
)

activity = Table(
    "activity",
    METADATA,
    Column("minute", TIME, primary_key=True),
    Column("producer_group_id", Integer, primary_key=True),
    Column("key_id", Text, primary_key=True),
    *(needed(name, BigInteger) for name in COUNTS),
)
"""What the programs did in a minute, by group and, for prepares, by API key."""
