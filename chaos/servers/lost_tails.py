"""Compares PostgreSQL before and after a loss of its newest commits, its lost tail."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psycopg

from chaos.servers.nodes import PostgresNode
from chaos.servers.probes import wait_until_true
from chaos.servers.server_thread import ServerThread
from outbox.messages.message_id import HalfId, Nonce, message_id_text

Key = tuple[int, int]
"""A half id and its nonce: a half id may be issued again after a lost tail, the pair is not."""
Contents = Mapping[Key, int | None]
"""Every half message and its decision."""

DECISIONS: Final = {1: "COMMIT", 2: "ROLLBACK", None: None}
ISOLATED: Final = {
    "autovacuum": "off",
    "fsync": "off",
    "synchronous_standby_names": "",
    "max_wal_senders": "10",
}
CONTENTS: Final = """
SELECT h.half_id, h.nonce, o.decision FROM outbox.half_message h
LEFT JOIN outbox.op_message o ON o.half_id = h.half_id
"""
EVERY_SHARD_HAS_A_CURSOR: Final = """
SELECT count(*) = 16 FROM outbox.progress WHERE name LIKE 'relay:%' AND manifest_offset IS NOT NULL
"""
CURSOR_SECONDS: Final = 60.0


def wait_every_shard_has_a_cursor(postgres: PostgresNode) -> bool:
    """Wait until every shard has stored a cursor; return whether all have.

    The wait may go on after the end of the faults. Losing a shard's very first cursor is another
    case: manifests without any cursor halt the shard, and an operator decides.
    """

    def complete() -> bool:
        with psycopg.connect(postgres.dsn()) as connection:
            return connection.execute(EVERY_SHARD_HAS_A_CURSOR.encode()).fetchone() == (True,)

    return wait_until_true(complete, CURSOR_SECONDS, threading.Event())


def contents(database_url: str) -> Contents:
    """Read the half messages of a server with their decisions."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(CONTENTS).fetchall()
    return {(half, nonce): decision for half, nonce, decision in rows}


def contents_of_stopped(node: PostgresNode, server_thread: ServerThread) -> Contents:
    """Start a stopped cluster at an unused address, read it and stop it again."""
    apart = PostgresNode(node.server.home, server_thread, settings=ISOLATED)
    apart.start()
    try:
        return contents(apart.dsn())
    finally:
        apart.server.stop()


def lost_tail(before: Contents, after: Contents) -> list[dict[str, object]]:
    """Return every lost half, and every lost decision of a remaining half."""
    return [
        {
            "half": half,
            "id": message_id_text(HalfId(half), Nonce(nonce)),
            "half_lost": (half, nonce) not in after,
            "op": DECISIONS[decision],
        }
        for (half, nonce), decision in sorted(before.items())
        if (half, nonce) not in after or after[half, nonce] != decision
    ]


def write_tail(run: Path, tail: list[dict[str, object]]) -> str:
    """Write ``lost/<n>.jsonl`` below the run's folder; return its name."""
    folder = run / "lost"
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir())):03}.jsonl"
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in tail))
    return f"lost/{path.name}"
