"""The rules for a producer's role that publishes in its own transaction."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from psycopg import errors

from api.ingest.record_size import batch_bytes
from outbox.messages.message import Message
from tests.integration.checker.relay.fixtures_shop import WAITING, Shop

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def test_the_2049th_message_of_one_transaction_is_refused(shop: Shop) -> None:
    many = "SELECT count(outbox.publish('account', %s, NULL)) FROM generate_series(1, %s)"
    with shop.transaction() as session:
        session.execute(many, (shop.world.topic, 2048))
        with (
            pytest.raises(errors.ProgramLimitExceeded, match="at most 2048"),
            session.transaction(),
        ):
            shop.publish(session, b"one more")
    assert shop.world.one(WAITING) == 2048


def test_two_serializable_transactions_publish_at_the_same_time(shop: Shop) -> None:
    """PostgreSQL would refuse one of them, if each had read a table that the other one writes."""
    with psycopg.connect(shop.url) as one, psycopg.connect(shop.url) as other:
        for session in (one, other):
            session.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            shop.publish(session, b"first")
        for session in (one, other):
            shop.publish(session, b"second")
        one.commit()
        other.commit()
    assert shop.world.one(WAITING) == 4


FORBIDDEN = (
    "SELECT * FROM outbox.half_message",
    "SELECT * FROM outbox.plain_message",
    "INSERT INTO outbox.plain_message (half_id) VALUES (1)",
    "INSERT INTO outbox.commit_log VALUES (1, 1, now(), '{1}', '{1}')",
    "SELECT outbox.allow_publish('shop_1', 'account', '{}')",
    "SELECT outbox.publish('other', 'orders', 'v')",
    "SELECT outbox.publish('account', 'unheard-of', 'v')",
)

REFUSED: tuple[dict[str, Any], ...] = (
    {"key": "k" * 8193},
    {"value": b"v" * 1_000_001},
    {"headers": '{"outbox_batch": "1"}'},
    {"headers": '{"Content-Type": "a/b"}'},
    {"headers": '{"delay": "1"}'},
    {"headers": '{"a b": "1"}'},
    {"headers": '{"a": 1}'},
    {"headers": '{"a": "line\\nbreak"}'},
    {"headers": '{"a": {"base64": "AP8"}}'},
    {"headers": '{"a": {"base64": "AP8=", "b": "c"}}'},
    {"headers": '{"a": {"base64": 1234}}'},
    {"headers": '["a"]'},
    {"headers": '{"a": "1", "b": "2", "a": "1"}'},
    {"headers": json.dumps({str(n): "v" for n in range(65)})},
    {"transaction_id": "t" * 129},
    {"transaction_id": ""},
    {"content_type": "no media type"},
)


def test_a_producers_role_may_only_publish_for_its_group(shop: Shop) -> None:
    with shop.transaction() as session:
        for statement in FORBIDDEN:
            with pytest.raises(errors.InsufficientPrivilege), session.transaction():
                session.execute(statement.encode())


def test_publish_refuses_what_prepare_refuses(shop: Shop) -> None:
    with shop.transaction() as session:
        for refused in REFUSED:
            given = {"value": b"v", "topic": shop.world.topic, "producer_group": "account"}
            asked = {**given, **refused}
            arguments = ", ".join(f"{name} => %({name})s" for name in asked)
            with pytest.raises(errors.InvalidParameterValue), session.transaction():
                session.execute(f"SELECT outbox.publish({arguments})".encode(), asked)
    assert shop.world.one(WAITING) == 0


def test_what_the_topic_never_takes_is_refused_with_the_size_that_a_prepare_counts(
    shop: Shop,
) -> None:
    seen = "UPDATE outbox.topic SET max_message_bytes = 2000, compacted = true WHERE name = %s"
    shop.world.connection.execute(seen, (shop.world.topic,))
    headers = {"tenant": "\u00fc" * 70} | {f"n-{n}": None for n in range(63)}
    named: dict[str, Any] = {"transaction_id": "\u00fc-1", "content_type": "text/plain"}
    message = Message(
        producer_group="account",
        topic=shop.world.topic,
        key=b"k",
        value=b"",
        headers=tuple((name, text.encode() if text else None) for name, text in headers.items()),
        **named,
    )
    fits = b"v" * (2000 - 1 - batch_bytes(message))  # its length takes one byte more
    given = {"group": "account", "key": "k", "headers": json.dumps(headers), **named}
    publish = (
        "SELECT outbox.publish(%(group)s, %(topic)s, %(value)s, key => %(key)s,"
        " headers => %(headers)s, transaction_id => %(transaction_id)s,"
        " content_type => %(content_type)s)"
    )
    assert batch_bytes(replace(message, value=fits)) == 2000
    with shop.transaction() as session:
        asked = {**given, "topic": shop.world.topic, "value": fits}
        session.execute(publish, asked)
        for refused, why in (({"value": fits + b"v"}, "2001 bytes"), ({"key": None}, "compacted")):
            with (
                pytest.raises(errors.InvalidParameterValue, match=why),
                session.transaction(),
            ):
                session.execute(publish, {**asked, **refused})
    assert shop.world.one(WAITING) == 1
