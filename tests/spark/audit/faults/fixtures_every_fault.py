"""One fault of each cause, planted in both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from uuid import UUID

from outbox.messages.message import HalfMessage, Resolution
from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.messages.record import MESSAGE_ID, Record
from tests.fixtures_records import header_in
from tests.spark.fixtures_outbox_writer import OutboxWriter

SECRET = b"the-value-nobody-may-see"
HEADERS = (("tenant", b"\x01\xff"), ("none", None))
NOWHERE = Nonce(7)
Halves = Mapping[str, HalfMessage]


CHANGED = {
    "INCONSISTENT/row: rolled back": "op_message SET decision = 2",
    "INCONSISTENT/row: of another transaction": "op_message SET xid = xid - 1",
    "INCONSISTENT/row: another value": "half_message SET value = 'altered'",
    "INCONSISTENT/row: another key": "half_message SET key = 'altered'",
    "INCONSISTENT/row: another topic": "half_message SET topic_id ="
    " (SELECT max(id) FROM outbox.topic)",
    "INCONSISTENT/row: another digest": "half_message SET content_digest = content_digest # 1",
    "INCONSISTENT/row: another nonce": "half_message SET nonce = nonce # 1",
    "INCONSISTENT/row: damaged headers": "half_message SET headers = '{x}'",
}
"""Changes of PostgreSQL after publishing."""
BEFORE = {
    "INCONSISTENT/row: rolled back before it was published": "op_message SET decision = 2",
    "ALTERED/value: altered before it was published": "half_message SET value = 'altered'",
}


def plant(writer: OutboxWriter) -> dict[str, str | None]:
    """Write both stores with one fault of each cause; return the message id of each, if known."""
    topic, other = f"{writer.prefix}-points", f"{writer.prefix}-other"
    writer.create_topics(topic, other)
    _publish_before(writer, topic)
    halves = writer.prepare(topic, 60, value=SECRET, headers=HEADERS)
    clean_elsewhere = writer.prepare(other, 3)
    leader, follower = writer.prepare(topic, 2, value=SECRET, headers=HEADERS, together=True)
    names = (
        "LOST/skipped",
        "UNPUBLISHED/held",
        "UNPUBLISHED/given_up",
        "DUPLICATE/repeated",
        *ALTERED,
        *CHANGED,
        *BEFORE,
    )
    gone = ("INCONSISTENT/row: no decision", "INCONSISTENT/row: no half")
    by_name = dict(
        zip((*names, *gone, "ORPHAN/rolled_back", "ORPHAN/undecided"), halves, strict=False)
    )
    by_name["LOST/skipped: not in the commit log"] = _unlogged(writer, topic)
    by_name["LOST/published"] = follower
    writer.end([leader], Resolution.COMMIT)
    rolled_back, undecided = by_name["ORPHAN/rolled_back"], by_name["ORPHAN/undecided"]
    writer.end([h for h in halves if h not in (rolled_back, undecided)], Resolution.COMMIT)
    writer.end(clean_elsewhere, Resolution.COMMIT)
    writer.end([rolled_back], Resolution.ROLLBACK)
    _change(writer, BEFORE, by_name)
    held = [by_name["UNPUBLISHED/held"], by_name["UNPUBLISHED/given_up"]]
    writer.publish(
        partial(_altered, _alterations(by_name, other)),
        held=[each.half_id for each in held],
        skipped=[by_name["LOST/skipped"].half_id],
    )
    _hold(writer, held)
    _produce_phantoms(writer, [rolled_back, undecided], halves[-1])
    _change(writer, CHANGED, by_name)
    for name, table in zip(gone, ("op_message", "half_message"), strict=True):
        deleted = by_name[name].half_id
        writer.execute(f"DELETE FROM outbox.{table} WHERE half_id = %s", deleted)
    expected: dict[str, str | None]
    expected = {name: str(half.message_id) for name, half in by_name.items()}
    renamed = by_name["INCONSISTENT/row: another nonce"]
    expected["INCONSISTENT/row: another nonce"] = str(_stranger(renamed))
    expected["INCONSISTENT/row: no half"] = None
    stranger = _stranger(halves[-1])
    return expected | {
        "ORPHAN/unknown": str(message_id_of(unused_id(halves[-1], 1), NOWHERE)),
        "ORPHAN/forgotten": str(message_id_of(unused_id(halves[-1], 2), NOWHERE)),
        "ORPHAN/unknown: of a known half": str(stranger),
    }


def _change(writer: OutboxWriter, changes: Mapping[str, str], by_name: Halves) -> None:
    """Change rows that nothing changes."""
    for name, change in changes.items():
        half_id = by_name[name].half_id
        writer.execute(f"UPDATE outbox.{change} WHERE half_id = %s", half_id)


def _stranger(half: HalfMessage) -> UUID:
    """Return a message id with the half id of a message and other random bits."""
    return message_id_of(half.half_id, Nonce(half.nonce ^ 1))


def _unlogged(writer: OutboxWriter, topic: str) -> HalfMessage:
    """Decide a message of which the commit log has no row: no relay will ever read it."""
    (half,) = writer.prepare(topic, 1)
    writer.end([half], Resolution.COMMIT)
    writer.execute("DELETE FROM outbox.commit_log WHERE half_ids = %s::int8[]", [half.half_id])
    return half


ALTERED = (
    *("WRONG_PLACE/topic", "ALTERED/key", "ALTERED/value", "ALTERED/header"),
    *("ALTERED/key: none", "ALTERED/value: null", "ALTERED/value: empty"),
    *(
        "ALTERED/header: swapped",
        "ALTERED/header: one more",
        "DUPLICATE/repeated: in another topic",
    ),
)
Alteration = Callable[[Record], Iterable[Record]]


def _publish_before(writer: OutboxWriter, topic: str) -> None:
    """Publish clean messages to each partition from each shard.

    A first run cannot tell a lost record from one that expired before it where the log has nothing
    older of the shard, nor compare a manifest whose range begins in a leaf that is gone.
    """
    writer.end(writer.prepare(topic, 200), Resolution.COMMIT)
    writer.publish()


def _alterations(by_name: dict[str, HalfMessage], other: str) -> dict[str, Alteration]:
    made: dict[str, Alteration] = {
        "LOST/published": lambda record: (),
        "DUPLICATE/repeated": lambda record: (record, record),
        "WRONG_PLACE/topic": lambda record: (record._replace(topic=other),),
        "ALTERED/key": lambda record: (record._replace(key=b"=HYPERLINK(<b>)"),),
        "ALTERED/value": lambda record: (record._replace(value=SECRET + b"!"),),
        "ALTERED/header": lambda record: (
            record._replace(headers=(*record.headers[:-1], ("none", b""))),
        ),
        "ALTERED/key: none": lambda record: (record._replace(key=None),),
        "ALTERED/value: null": lambda record: (record._replace(value=None),),
        "ALTERED/value: empty": lambda record: (record._replace(value=b""),),
        "ALTERED/header: swapped": lambda record: (_with_last_headers_swapped(record),),
        "ALTERED/header: one more": lambda record: (
            record._replace(headers=(*record.headers, ("tenant", b"north"))),
        ),
        "DUPLICATE/repeated: in another topic": lambda record: (
            record,
            record._replace(topic=other),
        ),
    }
    return {str(by_name[name].message_id): alter for name, alter in made.items()}


def _with_last_headers_swapped(record: Record) -> Record:
    *before, one, other = record.headers
    return record._replace(headers=(*before, other, one))


def _altered(alterations: dict[str, Alteration], record: Record) -> Iterable[Record]:
    alter = alterations.get(header_in(record, MESSAGE_ID))
    return (record,) if alter is None else alter(record)


def _hold(writer: OutboxWriter, halves: list[HalfMessage]) -> None:
    for half, dropped in zip(halves, (False, True), strict=True):
        writer.execute(
            "INSERT INTO outbox.held_record"
            " (half_id, nonce, shard, topic_id, xid, n, publish_error,"
            " dropped_at) VALUES (%s, %s, %s, %s, 1, 1, 'MSG_SIZE_TOO_LARGE',"
            " CASE WHEN %s THEN clock_timestamp() END)",
            *(half.half_id, half.nonce, half.shard, half.message.topic_id, dropped),
        )


def _produce_phantoms(
    writer: OutboxWriter, known: list[HalfMessage], committed: HalfMessage
) -> None:
    stranger = _stranger(committed)
    unknown, forgotten = unused_id(committed, 1), unused_id(committed, 2)
    without_half = [message_id_of(each, NOWHERE) for each in (unknown, forgotten)]
    model = writer.record(committed)
    writer.produce(
        *[writer.record(each) for each in known],
        *[_with_id(model, each) for each in (*without_half, stranger)],
        Record(model.topic, b"k", b"of another writer", None, ()),
    )
    writer.execute(
        "INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)"
        " VALUES (%s, %s, 0, 1)",
        *(forgotten, NOWHERE),
    )


def unused_id(half: HalfMessage, number: int) -> HalfId:
    """Return an id of the half's flush that no message has; what is older may be retired."""
    return HalfId(half.half_id + (1000 * number << 4))


def _with_id(record: Record, message_id: UUID) -> Record:
    return record._replace(headers=((MESSAGE_ID, str(message_id).encode()), *record.headers[1:]))
