"""The tables as SQLAlchemy sees them: what Alembic compares and what composed queries are made of.

The migrations are the truth; a test holds this page equal to the migrated schema. Hot statements
are plain SQL files beside their module, not made from here.
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

_TIME: Final = DateTime(timezone=True)


def _needed(name: str, kind: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **options)


def _payload() -> list[Column[Any]]:
    """Return the columns that a half message and its parked copy share."""
    return [
        _needed("nonce", BigInteger),
        _needed("prepared_at", _TIME),
        _needed("content_digest", BigInteger),
        _needed("producer_group_id", Integer),
        _needed("topic_id", Integer),
        Column("partition", Integer),
        Column("check_immunity_seconds", Integer),
        Column("transaction_id", Text),
        Column("key", LargeBinary),
        Column("value", LargeBinary),
        Column("headers", ARRAY(Text)),
        Column("content_type", Text),
        Column("traceparent", Text),
        Column("tags", ARRAY(Text)),
        Column("key_id", Text),
    ]


def _half_id() -> Column[Any]:
    return Column("half_id", BigInteger, primary_key=True, autoincrement=False)


installation = Table(
    "installation",
    METADATA,
    Column("one", Boolean, primary_key=True),
    _needed("installation_id", Uuid),
    _needed("base", BigInteger),
    _needed("created_at", _TIME),
    _needed("plain_outbox", Boolean),
)

topic = Table(
    "topic",
    METADATA,
    Column("id", Integer, primary_key=True),
    _needed("name", Text, unique=True),
    _needed("created_at", _TIME),
)

producer_group = Table(
    "producer_group",
    METADATA,
    Column("id", Integer, primary_key=True),
    _needed("name", Text, unique=True),
    _needed("check_url", Text),
    _needed("check_interval_seconds", Integer),
    _needed("check_max", Integer),
    _needed("check_timeout_seconds", Integer),
    _needed("transaction_timeout_seconds", Integer),
    _needed("on_check_max", Text),
    _needed("backoff", Text),
    _needed("max_inflight", Integer),
    _needed("batch_check", Boolean),
    _needed("check_payload", Boolean),
    _needed("topics", ARRAY(Text)),
    _needed("max_age_seconds", Integer),
    _needed("paused", Boolean),
    Column("pause_reason", Text),
    _needed("secret", LargeBinary),
    Column("previous_secret", LargeBinary),
    Column("previous_expires_at", _TIME),
    _needed("version", Integer),
    _needed("created_at", _TIME),
    _needed("updated_at", _TIME),
    Column("deleted_at", _TIME),
)

half_message = Table("half_message", METADATA, _half_id(), *_payload())

op_message = Table(
    "op_message",
    METADATA,
    _half_id(),
    _needed("xid", BigInteger),
    _needed("decided_at", _TIME),
    _needed("decision", SmallInteger),
    _needed("decided_by", SmallInteger),
    Column("reason", Text),
    Column("actor", Text),
)

commit_log = Table(
    "commit_log",
    METADATA,
    Column("shard", SmallInteger, primary_key=True),
    Column("xid", BigInteger, primary_key=True),
    _needed("committed_at", _TIME),
    _needed("half_ids", ARRAY(BigInteger)),
    _needed("content_digests", ARRAY(BigInteger)),
)

publication_log = Table(
    "publication_log",
    METADATA,
    Column("shard", SmallInteger, primary_key=True),
    Column("to_xid", BigInteger, primary_key=True),
    Column("to_n", Integer, primary_key=True),
    Column("batch_no", BigInteger, primary_key=True),
    _needed("from_xid", BigInteger),
    _needed("from_n", Integer),
    _needed("published_at", _TIME),
    _needed("half_ids", ARRAY(BigInteger)),
    _needed("partitions", ARRAY(Integer)),
    _needed("offsets", ARRAY(BigInteger)),
)

check_attempt = Table(
    "check_attempt",
    METADATA,
    _half_id(),
    Column("look_id", BigInteger, primary_key=True),
    _needed("round", Integer),
    _needed("attempt", Integer),
    _needed("asked_at", _TIME),
    _needed("outcome", Text),
    Column("http_status", Integer),
    _needed("latency_ms", Integer),
    _needed("counted", Boolean),
    _needed("applied", Boolean),
    Column("error", Text),
)

transaction_key = Table(
    "transaction_key",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True),
    Column("transaction_id", Text, primary_key=True),
    _needed("half_id", BigInteger),
)

plain_message = Table(
    "plain_message",
    METADATA,
    _half_id(),
    _needed("place", BigInteger),
    _needed("nonce", BigInteger),
    _needed("published_at", _TIME),
    _needed("producer_group_id", Integer),
    _needed("topic_id", Integer),
    Column("transaction_id", Text),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", ARRAY(Text)),
    Column("content_type", Text),
)

plain_publisher = Table(
    "plain_publisher",
    METADATA,
    Column("role_name", Text, primary_key=True),
    Column("producer_group_id", Integer, primary_key=True, autoincrement=False),
    _needed("created_at", _TIME),
)

check_queue = Table(
    "check_queue",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True),
    Column("delay_seconds", Integer, primary_key=True),
    Column("id", BigInteger, primary_key=True),
    _needed("half_id", BigInteger),
    _needed("round", Integer),
    _needed("check_count", Integer),
    _needed("only_unknown", Boolean),
    _needed("age_from", _TIME),
    _needed("due_at", _TIME),
)

check_class = Table(
    "check_class",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True),
    Column("delay_seconds", Integer, primary_key=True),
    _needed("position", BigInteger),
)

check_breaker = Table(
    "check_breaker",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True, autoincrement=False),
    _needed("wait_seconds", Integer),
    _needed("probe_at", _TIME),
    _needed("opened_at", _TIME),
)

recheck = Table(
    "recheck",
    METADATA,
    _half_id(),
    _needed("round", Integer),
    _needed("rechecked_at", _TIME),
)

parked_message = Table(
    "parked_message",
    METADATA,
    _half_id(),
    *_payload(),
    _needed("parked_at", _TIME),
    _needed("parked_reason", Text),
    _needed("check_count", Integer),
    Column("resumed_at", _TIME),
    Column("copied_at", _TIME),
)

already_published = Table(
    "already_published",
    METADATA,
    _half_id(),
    Column("nonce", BigInteger, primary_key=True),
    _needed("shard", SmallInteger),
    _needed("manifest_offset", BigInteger),
    Column("producer_group", Text),
    Column("transaction_id", Text),
    _needed("found_at", _TIME),
)

held_record = Table(
    "held_record",
    METADATA,
    _half_id(),
    _needed("nonce", BigInteger),
    _needed("shard", SmallInteger),
    _needed("topic_id", Integer),
    Column("key", LargeBinary),
    _needed("topic_wide", Boolean),
    _needed("xid", BigInteger),
    _needed("n", Integer),
    _needed("held_at", _TIME),
    _needed("publish_error", Text),
    _needed("attempts", Integer),
    _needed("next_attempt_at", _TIME),
    Column("repair", Text),
    Column("payload", JSONB),
    Column("released_at", _TIME),
    Column("release_batch_no", BigInteger),
    Column("released_partition", Integer),
    Column("released_offset", BigInteger),
    Column("dropped_at", _TIME),
    Column("drop_reason", Text),
)

progress = Table(
    "progress",
    METADATA,
    Column("name", Text, primary_key=True),
    _needed("position", BigInteger),
    _needed("position_n", Integer),
    Column("manifest_offset", BigInteger),
    Column("batch_no", BigInteger),
    Column("crc", BigInteger),
    Column("gen", BigInteger),
    Column("cluster_id", Text),
    Column("topic_id", Text),
    Column("pg_system_id", Text),
    Column("halt_reason", Text),
    Column("halt_detail", Text),
    Column("owner", Text),
    _needed("updated_at", _TIME),
)

api_key = Table(
    "api_key",
    METADATA,
    Column("key_id", Text, primary_key=True),
    _needed("name", Text),
    _needed("secret_hmac", LargeBinary),
    _needed("producer_groups", ARRAY(Text)),
    _needed("scopes", ARRAY(Text)),
    Column("expires_at", _TIME),
    _needed("created_at", _TIME),
    Column("revoked_at", _TIME),
)

bulk_action = Table(
    "bulk_action",
    METADATA,
    Column("id", Uuid, primary_key=True),
    _needed("action", Text),
    Column("decision", Text),
    Column("groups", ARRAY(Integer)),
    _needed("operator", Text),
    _needed("reason", Text),
    Column("key_id", Text),
    _needed("half_ids", ARRAY(BigInteger)),
    _needed("done", Integer),
    _needed("failed", Integer),
    _needed("failures", JSONB),
    _needed("created_at", _TIME),
    Column("finished_at", _TIME),
    Column("rate", Integer),
)

audit_log = Table(
    "audit_log",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    _needed("at", _TIME),
    _needed("action", Text),
    _needed("target", Text),
    Column("half_id", BigInteger),
    Column("key_id", Text),
    Column("operator", Text),
    Column("reason", Text),
    Column("detail", JSONB),
)
