"""Dumps every PostgreSQL table that the judge needs, in one snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from outbox.messages.message_id import HalfId, Nonce, message_id_text

FETCHED: Final = 5_000
_HALVES: Final = """
SELECT h.half_id, h.nonce, h.content_digest, g.name AS producer_group, t.name AS topic,
    h.leader_id, h.transaction_id AS tx, encode(h.key, 'hex') AS key,
    encode(sha256(h.value), 'hex') AS sha
FROM outbox.half_message h JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id
"""
QUERIES: Final = {
    "halves": _HALVES,
    "parked": """SELECT h.half_id FROM outbox.half_message h
        JOIN outbox.parked_message p ON p.half_id = coalesce(h.leader_id, h.half_id)""",
    "ops": "SELECT half_id, decision, decided_by FROM outbox.op_message",
    "commit_log": "SELECT shard, xid, half_ids FROM outbox.commit_log",
    "progress": "SELECT name, halt_reason FROM outbox.progress",
    "held": "SELECT half_id, nonce, released_at IS NOT NULL AS released FROM outbox.held_record",
    "already": "SELECT half_id, nonce FROM outbox.already_published",
}


def dump_postgres(folder: Path, database_url: str) -> None:
    """Write one file per query. Rows with a half id and a nonce get the message id as ``id``."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name, query in QUERIES.items():
            _dump(connection, folder / f"{name}.jsonl", query)


def _dump(connection: psycopg.Connection[Any], path: Path, query: str) -> None:
    with (
        connection.cursor(f"chaos_{path.stem}", row_factory=dict_row) as cursor,
        path.open("w") as file,
    ):
        cursor.itersize = FETCHED
        cursor.execute(query.encode())
        for row in cursor:
            file.write(json.dumps(_named(row), separators=(",", ":")) + "\n")


def _named(row: dict[str, Any]) -> dict[str, Any]:
    if "nonce" not in row:
        return row
    nonce = row.pop("nonce")
    return {"id": message_id_text(HalfId(row["half_id"]), Nonce(nonce)), **row}
