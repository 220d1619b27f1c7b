"""The tables of messages in SQLAlchemy's form, for composed queries.

`check_tables`, `operator_tables` and `reconciliation_tables` define the other tables; `metadata` is
what Alembic compares.

The migrations define the schema; a test ensures that this module equals the migrated schema. Hot
statements are SQL files beside their module and do not use these tables.
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
    SmallInteger,
    Table,
    Text,
    Uuid,
    false,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

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


def half_id() -> Column[Any]:
    """Return the primary key that a table shares with half_message."""
    return Column("half_id", BigInteger, primary_key=True, autoincrement=False)


installation = Table(
    "installation",
    METADATA,
    Column("one", Boolean, primary_key=True),
    needed("installation_id", Uuid),
    needed("base", BigInteger),
    needed("created_at", TIME),
    needed("plain_outbox", Boolean),
    needed("shards", SmallInteger),
)

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
    half_id(),
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

op_message = Table(
    "op_message",
    METADATA,
    half_id(),
    needed("xid", BigInteger),
    needed("decided_at", TIME),
    needed("decision", SmallInteger),
    needed("decided_by", SmallInteger),
    Column("reason", Text),
    Column("actor", Text),
)

commit_log = Table(
    "commit_log",
    METADATA,
    Column("shard", SmallInteger, primary_key=True),
    Column("xid", BigInteger, primary_key=True),
    needed("committed_at", TIME),
    needed("half_ids", ARRAY(BigInteger)),
    needed("content_digests", ARRAY(BigInteger)),
    needed("awaited", Boolean, server_default=false()),
)

publication_log = Table(
    "publication_log",
    METADATA,
    Column("shard", SmallInteger, primary_key=True),
    Column("to_xid", BigInteger, primary_key=True),
    Column("to_n", Integer, primary_key=True),
    Column("batch_no", BigInteger, primary_key=True),
    needed("from_xid", BigInteger),
    needed("from_n", Integer),
    needed("published_at", TIME),
    needed("half_ids", ARRAY(BigInteger)),
    needed("partitions", ARRAY(Integer)),
    needed("offsets", ARRAY(BigInteger)),
)

transaction_key = Table(
    "transaction_key",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True),
    Column("transaction_id", Text, primary_key=True),
    needed("half_id", BigInteger),
)

plain_message = Table(
    "plain_message",
    METADATA,
    half_id(),
    needed("place", BigInteger),
    needed("nonce", BigInteger),
    needed("published_at", TIME),
    needed("producer_group_id", Integer),
    needed("topic_id", Integer),
    Column("transaction_id", Text),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", ARRAY(LargeBinary)),
    Column("content_type", Text),
)

plain_publisher = Table(
    "plain_publisher",
    METADATA,
    Column("role_name", Text, primary_key=True),
    Column("producer_group_id", Integer, primary_key=True, autoincrement=False),
    needed("created_at", TIME),
)

parked_message = Table(
    "parked_message",
    METADATA,
    half_id(),
    needed("producer_group_id", Integer),
    needed("parked_at", TIME),
    needed("parked_reason", Text),
    needed("check_count", Integer),
    Column("resumed_at", TIME),
    Column("copied_at", TIME),
    needed("earlier_parkings", JSONB),
)

already_published = Table(
    "already_published",
    METADATA,
    half_id(),
    Column("nonce", BigInteger, primary_key=True),
    needed("shard", SmallInteger),
    needed("manifest_offset", BigInteger),
    Column("producer_group", Text),
    Column("transaction_id", Text),
    needed("found_at", TIME),
)

held_record = Table(
    "held_record",
    METADATA,
    half_id(),
    needed("nonce", BigInteger),
    needed("shard", SmallInteger),
    needed("topic_id", Integer),
    Column("key", LargeBinary),
    needed("topic_wide", Boolean),
    needed("xid", BigInteger),
    needed("n", Integer),
    needed("held_at", TIME),
    needed("publish_error", Text),
    needed("attempts", Integer),
    needed("next_attempt_at", TIME),
    Column("repair", Text),
    Column("released_at", TIME),
    Column("release_batch_no", BigInteger),
    Column("released_partition", Integer),
    Column("released_offset", BigInteger),
    Column("dropped_at", TIME),
    Column("drop_reason", Text),
)

progress = Table(
    "progress",
    METADATA,
    Column("name", Text, primary_key=True),
    needed("position", BigInteger),
    needed("position_n", Integer),
    Column("manifest_offset", BigInteger),
    Column("batch_no", BigInteger),
    Column("crc", BigInteger),
    Column("gen", BigInteger),
    Column("cluster_id", Text),
    Column("topic_id", Text),
    Column("pg_system_id", Text),
    Column("halt_reason", Text),
    Column("owner", Text),
    needed("updated_at", TIME),
)

retired_leaf = Table(
    "retired_leaf",
    METADATA,
    Column("leaf", BigInteger, primary_key=True),
)
