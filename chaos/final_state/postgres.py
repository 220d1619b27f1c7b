"""Dumps every PostgreSQL table that the judge needs, in one snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from outbox.messages.message_id import HalfId, Nonce, message_id_text

FETCHED: Final = 5_000
_HALF: Final = """
SELECT h.half_id, h.nonce, extract(epoch FROM h.prepared_at)::float8 AS prepared_at,
    h.content_digest, g.name AS producer_group, t.name AS topic, h.transaction_id AS tx,
    h.check_immunity_seconds AS immunity, encode(h.key, 'hex') AS key,
    encode(sha256(h.value), 'hex') AS sha{more}
FROM {table} h JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id WHERE h.half_id >= %(first_half)s
"""
_PARKED: Final = ", extract(epoch FROM h.parked_at)::float8 AS parked_at, h.parked_reason"
_PROGRESS: Final = (
    "SELECT name, position, position_n, manifest_offset, batch_no, crc, gen, halt_reason"
    " FROM outbox.progress"
)
QUERIES: Final = {
    "halves": _HALF.format(more="", table="outbox.half_message"),
    "parked": _HALF.format(more=_PARKED, table="outbox.parked_message"),
    "ops": "SELECT half_id, xid, extract(epoch FROM decided_at)::float8 AS decided_at, decision,"
    " decided_by FROM outbox.op_message WHERE half_id >= %(first_half)s",
    "commit_log": "SELECT shard, xid, half_ids, content_digests FROM outbox.commit_log"
    " WHERE xid >= %(first_xid)s ORDER BY shard, xid",
    "progress": _PROGRESS,
    "held": "SELECT half_id, nonce, shard, released_at IS NOT NULL AS released,"
    " dropped_at IS NOT NULL AS dropped FROM outbox.held_record WHERE half_id >= %(first_half)s",
    "already": "SELECT half_id, nonce, shard, manifest_offset FROM outbox.already_published"
    " WHERE half_id >= %(first_half)s",
    "attempts": "SELECT half_id, look_id, round, attempt,"
    " extract(epoch FROM asked_at)::float8 AS asked_at, outcome, counted, applied"
    " FROM outbox.check_attempt WHERE half_id >= %(first_half)s",
    "retired": "SELECT leaf FROM outbox.retired_leaf WHERE leaf >= %(first_xid)s::bigint >> 20",
    "resolved": "SELECT detail->>'halt_reason' AS halt_reason FROM outbox.audit_log"
    " WHERE action = 'shard.resolve' AND at >= to_timestamp(%(began)s)",
}
"""What the run has written: an installation may have lived before it."""
_START: Final = """
SELECT outbox.watermark() AS first_xid, outbox.watermark() << 15 AS first_half,
    extract(epoch FROM clock_timestamp())::float8 AS began
"""
START: Final = "start.json"


def shards_in_use(database_url: str) -> frozenset[int]:
    """Return the shards that the messages of this installation have."""
    with psycopg.connect(database_url) as connection:
        found = connection.execute("SELECT shards FROM outbox.installation").fetchone()
    assert found is not None
    return frozenset(range(found[0]))


def write_start(run: Path, database_url: str) -> None:
    """Write where the run begins: its first ids, and the progress of the relays before it."""
    with psycopg.connect(database_url, row_factory=dict_row) as connection:
        found = connection.execute(_START).fetchone()
        progress = connection.execute(_PROGRESS.encode()).fetchall()
    (run / START).write_text(json.dumps({"first": found, "progress": progress}))


def dump_postgres(folder: Path, database_url: str) -> None:
    """Write one file per query. Rows with a half id and a nonce get the message id as ``id``."""
    first = json.loads((folder.parent / START).read_text())["first"]
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name, query in QUERIES.items():
            _dump(connection, folder / f"{name}.jsonl", query, first)


def _dump(
    connection: psycopg.Connection[Any], path: Path, query: str, first: Mapping[str, float]
) -> None:
    with (
        connection.cursor(f"chaos_{path.stem}", row_factory=dict_row) as cursor,
        path.open("w") as file,
    ):
        cursor.itersize = FETCHED
        cursor.execute(query.encode(), first)
        for row in cursor:
            file.write(json.dumps(_named(row), separators=(",", ":")) + "\n")


def _named(row: dict[str, Any]) -> dict[str, Any]:
    if "nonce" not in row:
        return row
    nonce = row.pop("nonce")
    return {"id": message_id_text(HalfId(row["half_id"]), Nonce(nonce)), **row}
