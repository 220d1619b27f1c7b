"""Very many open messages of one group and topic, beside few of another."""

from __future__ import annotations

from typing import Final, LiteralString

from benchmarks.load.committed import register
from benchmarks.load.history import report_reads
from outbox.postgres.sessions.connections import Connection

MANY: Final = 6_000
FEW: Final = 3
BUSY: Final = "busy"
QUIET: Final = "quiet"
OLD_SECONDS: Final = 86_400
"""The age of the oldest message of the busy group in each state, whose place is in the middle."""
DECIDED: Final = MANY // 3
"""How many of the busy group's queued and parked messages are decided: the oldest of them."""
_IDS: Final[LiteralString] = (
    "CREATE TEMPORARY TABLE made AS"
    " SELECT kind, n, xid, (xid << 15) | ((n % 16) << 4) | 3 AS half_id,"
    " now() - make_interval(secs => CASE n WHEN {middle} THEN {old} ELSE 0 END) AS prepared_at,"
    " CASE WHEN n < {many} THEN {busy} ELSE {quiet} END AS group_id,"
    " CASE WHEN n < {many} THEN {busy_topic} ELSE {quiet_topic} END AS topic_id"
    " FROM (SELECT kind, n, outbox.watermark() + 1000 * block + n / 16 AS xid"
    " FROM unnest(ARRAY['queued', 'parked', 'held', 'unswept', 'plain'])"
    " WITH ORDINALITY AS k (kind, block), generate_series(0, {many} + {few} - 1) n) ids"
)
_ROWS: Final[tuple[LiteralString, ...]] = (
    "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    " producer_group_id, topic_id) SELECT half_id, n, prepared_at, n, group_id, topic_id"
    " FROM made WHERE kind <> 'plain'",
    "INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)"
    " SELECT half_id, xid, now(), 1, 1 FROM made"
    " WHERE kind = 'held' OR kind IN ('queued', 'parked') AND n < {decided}",
    "INSERT INTO outbox.check_queue (producer_group_id, delay_seconds, id, half_id, age_from,"
    " due_at) SELECT group_id, 30, half_id, half_id, prepared_at, now() FROM made"
    " WHERE kind = 'queued'",
    "INSERT INTO outbox.check_class (producer_group_id, delay_seconds)"
    " SELECT DISTINCT group_id, 30 FROM made",
    "INSERT INTO outbox.parked_message (half_id, producer_group_id, parked_at, parked_reason,"
    " check_count) SELECT half_id, group_id, now(), 'check_max', 15 FROM made"
    " WHERE kind = 'parked'",
    "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, key, xid, n, publish_error)"
    " SELECT half_id, n, 3, topic_id, int4send(n), xid, n % 16, 'gone' FROM made"
    " WHERE kind = 'held'",
    "INSERT INTO outbox.plain_message (half_id, nonce, published_at, producer_group_id, topic_id)"
    " SELECT half_id, n, prepared_at, group_id, topic_id FROM made WHERE kind = 'plain'",
    "INSERT INTO outbox.progress (name, position) SELECT 'sweep', max(half_id) FROM made"
    " WHERE kind = 'held' ON CONFLICT (name) DO UPDATE SET position = excluded.position",
    "INSERT INTO outbox.progress (name, position) SELECT 'relay:3', max(xid) FROM made"
    " ON CONFLICT (name) DO UPDATE SET position = excluded.position",
)


def fill(session: Connection) -> None:
    """Store as many of each kind; each is in one class, group, topic and shard."""
    busy, quiet = register(session, "many", BUSY), register(session, "few", QUIET)
    facts = {
        "many": MANY,
        "few": FEW,
        "old": OLD_SECONDS,
        "middle": MANY // 2,
        "decided": DECIDED,
        "busy": busy.producer_group_id,
        "quiet": quiet.producer_group_id,
        "busy_topic": busy.topic_id,
        "quiet_topic": quiet.topic_id,
    }
    for statement in (_IDS, *_ROWS):
        session.execute(statement.format(**facts).encode())
    report_reads(session)
