"""The tables of API keys, bulk actions, the audit log and the activity."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from outbox.operators.activity import COUNTS
from outbox.postgres.schema.tables import METADATA, TIME, needed

api_key = Table(
    "api_key",
    METADATA,
    Column("key_id", Text, primary_key=True),
    needed("name", Text),
    needed("secret_hmac", LargeBinary),
    needed("producer_groups", ARRAY(Text)),
    needed("scopes", ARRAY(Text)),
    Column("expires_at", TIME),
    needed("created_at", TIME),
    Column("revoked_at", TIME),
    Column("used_at", TIME),
    Column("refused_at", TIME),
    Column("root_key_id", Text),
)

bulk_action = Table(
    "bulk_action",
    METADATA,
    Column("id", Uuid, primary_key=True),
    needed("action", Text),
    Column("decision", Text),
    Column("groups", ARRAY(Integer)),
    needed("operator", Text),
    needed("reason", Text),
    Column("key_id", Text),
    needed("half_ids", ARRAY(BigInteger)),
    needed("done", Integer),
    needed("failed", Integer),
    needed("failures", JSONB),
    needed("created_at", TIME),
    Column("finished_at", TIME),
    needed("starts_at", TIME),
    Column("cancelled_at", TIME),
)

audit_log = Table(
    "audit_log",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    needed("at", TIME),
    needed("action", Text),
    needed("target", Text),
    Column("half_id", BigInteger),
    Column("key_id", Text),
    Column("operator", Text),
    Column("reason", Text),
    Column("detail", JSONB),
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
