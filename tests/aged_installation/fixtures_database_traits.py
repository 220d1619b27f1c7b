"""What a life leaves in the database; each trait is one function over an installation.

All names begin with ``aged-``, so that a test on such a database can use the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable

from outbox.messages.message import Resolution
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.installation_admin import rebase_installation
from tests.aged_installation.fixtures_life import DAY, Life
from tests.aged_installation.fixtures_xids import LEAF_XIDS, pass_leaves, shift_base
from tests.fixtures_databases import migrate

FIRST_ID = 1_001
"""The id of the first group and topic: as if a thousand had been before."""
TOPIC = "aged-orders"
_COPY_AS_OPEN = """
INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest, producer_group_id,
    topic_id, key, value)
SELECT half_id + (1000 << 4), nonce, prepared_at, content_digest, producer_group_id, topic_id, key,
    value FROM outbox.half_message LIMIT 6
"""
"""No program of today can prepare at the old revision."""
_PARK = """
INSERT INTO outbox.parked_message (half_id, nonce, prepared_at, content_digest, producer_group_id,
    topic_id, "partition", check_immunity_seconds, transaction_id, key, value, headers,
    content_type, traceparent, tags, key_id, parked_at, parked_reason, check_count)
SELECT half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
    check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags,
    key_id, clock_timestamp(), 'check_max', 15
FROM outbox.half_message WHERE half_id = ANY (%s)
"""
_PASS_QUEUE = """
UPDATE outbox.check_class c SET position = q.last FROM (
    SELECT producer_group_id, delay_seconds, max(k.id) AS last FROM outbox.check_queue k
    JOIN outbox.producer_group g ON g.id = k.producer_group_id WHERE g.name = ANY (%s) GROUP BY 1, 2
) q WHERE (c.producer_group_id, c.delay_seconds) = (q.producer_group_id, q.delay_seconds)
"""
_HOLD = """
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, key, xid, n, publish_error,
    attempts, next_attempt_at, payload, dropped_at, drop_reason)
SELECT h.half_id, h.nonce, (h.half_id & 15)::int2, h.topic_id, h.key, o.xid, 1,
    'MSG_SIZE_TOO_LARGE', 9, clock_timestamp() + interval '300 seconds',
    jsonb_build_object('producer_group', g.name, 'transaction_id', h.transaction_id,
        'decided_by', o.decided_by, 'value', encode(h.value, 'base64'), 'partition', h."partition",
        'content_type', h.content_type, 'traceparent', h.traceparent, 'headers', h.headers),
    CASE WHEN h.half_id = %(given_up)s THEN clock_timestamp() END,
    CASE WHEN h.half_id = %(given_up)s THEN 'its consumer is gone' END
FROM outbox.half_message h JOIN outbox.op_message o USING (half_id)
JOIN outbox.producer_group g ON g.id = h.producer_group_id
WHERE h.half_id IN (%(held)s, %(given_up)s)
"""
_RECOVERED = """
WITH halted AS (
    INSERT INTO outbox.audit_log (action, target, operator, reason)
    VALUES ('shard.resolve', 'shard 6', 'aged', 'database_changed: --accept')
), named AS (SELECT generate_series(1, 3) AS n)
INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset, producer_group,
    transaction_id)
SELECT (n << 15) + 6, n, 6, n, 'aged-bank', 'aged-' || n FROM named
"""
"""What resolving a halt, and three records that PostgreSQL has lost, leave behind."""
_FORGET_COMMITS = """
WITH gone AS (DELETE FROM outbox.op_message WHERE decision = 1 RETURNING half_id),
    held AS (DELETE FROM outbox.held_record h USING gone WHERE h.half_id = gone.half_id)
DELETE FROM outbox.half_message h USING gone WHERE h.half_id = gone.half_id
"""
_RELAYS = """
INSERT INTO outbox.progress AS p (name, position, position_n, manifest_offset, batch_no, crc, gen)
SELECT 'relay:' || s, coalesce(c.xid, %(least)s), coalesce(c.n, 1), -1, 100 + s, 7, 5
FROM generate_series(0, 15) AS s LEFT JOIN (
    SELECT DISTINCT ON (shard) shard, xid, cardinality(half_ids) AS n
    FROM outbox.commit_log ORDER BY shard, xid DESC
) c ON c.shard = s
ON CONFLICT (name) DO UPDATE SET position = greatest(p.position, EXCLUDED.position),
    position_n = CASE WHEN EXCLUDED.position > p.position THEN EXCLUDED.position_n
        ELSE p.position_n END, batch_no = p.batch_no + 1
"""
_HEARTBEATS = """
INSERT INTO outbox.progress (name) SELECT 'heartbeat:' || name
FROM unnest('{sweep,check,relay,partitions,retire}'::text[]) AS name ON CONFLICT DO NOTHING
"""

HELD_SHARD = 4
"""Not the shard of the relays that tests run: what they hold is theirs alone."""

Trait = Callable[[Life], None]


def migrated_from_an_old_version(life: Life) -> None:
    """Fill an empty database at an old revision with committed and open halves; migrate it."""
    migrate(life.database_url)
    for table in ("producer_group", "topic"):
        life.execute(f"ALTER TABLE outbox.{table} ALTER COLUMN id RESTART WITH {FIRST_ID}")
    life.commit(life.template("aged-bank", TOPIC), 40)
    life.execute(_COPY_AS_OPEN)
    life.end_open("aged-bank", Resolution.ROLLBACK)


def relays_passed(life: Life) -> None:
    """Let the relays pass every commit, last in the mode at_least_once.

    That mode knows no manifests, so the next start in exactly_once takes the log's end, whatever
    topic it meets; no stored identity: an operator has accepted the stores that come.
    """
    low = life.rows("SELECT outbox.watermark() - 1")[0][0]
    life.execute(_RELAYS.replace("%(least)s", str(low)))
    life.execute(_HEARTBEATS)


def leaves_retired(life: Life) -> None:
    """Let retention remove the leaf that holds everything so far."""
    life.pass_time(2)
    life.sweep()
    relays_passed(life)
    pass_leaves(life)
    life.pass_time(30 * DAY)
    assert life.retire(), "a leaf whose messages have all ended was kept"


def group_paused_for_long(life: Life) -> None:
    """Leave open halves of a group that was paused days ago: overdue, almost at their max age."""
    life.prepare(life.template("aged-paused", TOPIC), 20)
    life.execute(
        "UPDATE outbox.producer_group SET paused = true, pause_reason = 'its service is rebuilt',"
        " max_age_seconds = %s WHERE name = 'aged-paused'",
        6 * DAY,
    )
    _let_pass(life, 5 * DAY)


def group_deleted(life: Life) -> None:
    """Delete a group whose ended messages are still there, and register another one again."""
    for name in ("aged-deleted", "aged-registered-again"):
        halves = life.prepare(life.template(name, TOPIC), 4)
        life.end(halves[:2], Resolution.ROLLBACK)
        life.end(halves[2:], Resolution.COMMIT)
    _let_pass(life, 30 * DAY)
    life.execute(
        "UPDATE outbox.producer_group SET version = version + 1, deleted_at = clock_timestamp()"
        " WHERE name = 'aged-deleted'"
    )
    life.execute(
        "UPDATE outbox.producer_group SET version = version + 1"
        " WHERE name = 'aged-registered-again'"
    )


def messages_parked(life: Life) -> None:
    """Park messages whose leaf is old by now; their queue rows are passed."""
    halves = life.prepare(life.template("aged-parked", TOPIC), 5)
    _let_pass(life, 30 * DAY)
    life.execute(_PARK, [half.half_id for half in halves])
    life.execute(_PASS_QUEUE, ["aged-parked"])
    life.pass_time(10 * DAY)


def held_and_given_up(life: Life) -> None:
    """Leave two messages that Kafka refuses, one given up; their leaf goes without them."""
    held, given_up = life.commit(life.template("aged-bank", TOPIC), 2, shard=HELD_SHARD)
    with life.connect() as connection:
        connection.execute(_HOLD, {"held": held, "given_up": given_up})


def halted_and_recovered(life: Life) -> None:
    """Leave what a resolved halt and a HISTORY write: ids that PostgreSQL knows from Kafka."""
    life.execute(_RECOVERED)


def old_commits(life: Life) -> None:
    """Leave published messages in a leaf that something else keeps."""
    life.commit(life.template("aged-bank", TOPIC), 60)
    relays_passed(life)
    life.pass_time(2)
    life.sweep()


def commits_forgotten(life: Life) -> None:
    """Take the old commits away; the manifests that a test writes say how far its shards are."""
    publications_forgotten(life)
    life.execute("DELETE FROM outbox.progress WHERE starts_with(name, 'relay:')")


def publications_forgotten(life: Life) -> None:
    """Take the old commits away with their halves, as retention does: an audit begins after them.

    What an audit compares must be in the broker that it reads, and a former life's is not.
    """
    life.execute(_FORGET_COMMITS)
    life.execute("TRUNCATE outbox.commit_log")


def restored_elsewhere(life: Life) -> None:
    """Go on in a cluster whose xids are lower, after `outbox installation rebase`."""
    shift_base(life, -LEAF_XIDS)
    action = OperatorAction(operator="aged", reason="restored", key_id=None)
    rebased = rebase_installation(life.database_url, action)
    assert rebased.now > rebased.was


def leaves_missing_ahead(life: Life) -> None:
    """Jump past every leaf, and go on with the current one alone: nobody has made the next."""
    pass_leaves(life, 5, ahead=0)


def rows_in_the_default_leaf(life: Life) -> None:
    """Write into a range that nobody made a leaf for; the rows go to the default leaf."""
    shift_base(life, 10 * LEAF_XIDS)
    life.commit(life.template("aged-bank", TOPIC), 5)


def _let_pass(life: Life, seconds: int) -> None:
    life.pass_time(seconds)
    life.sweep()
