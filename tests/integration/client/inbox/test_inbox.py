"""The inbox on real databases: the row and the effect are stored together, once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from confluent_kafka import Message

from outbox_client import DatabaseUnsupported
from outbox_client.inbox.async_sqlalchemy import AsyncSqlAlchemyInbox
from outbox_client.inbox.psycopg import AsyncPsycopgInbox, PsycopgInbox
from outbox_client.inbox.sqlalchemy import SqlAlchemyInbox
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_places import (
    PLACES,
    Place,
    place_for,
    waits_for_a_lock,
)

pytestmark = pytest.mark.postgres

CONSUMER = "member-service"
WEEK = timedelta(days=7)
INBOXES: dict[str, Any] = {
    "psycopg": PsycopgInbox(CONSUMER),
    "sqlalchemy": SqlAlchemyInbox(CONSUMER),
    "psycopg async": AsyncPsycopgInbox(CONSUMER),
    "sqlalchemy async": AsyncSqlAlchemyInbox(CONSUMER),
    "sqlite": SqlAlchemyInbox(CONSUMER),
}


class Interrupted(Exception):
    """The consumer dies in its transaction."""


def make_record(name: str = "m-1") -> Message:
    return Message(topic="points", headers=[("outbox_message_id", name.encode())], value=b"100")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with place_for(request, INBOXES) as place:
        with place.local() as db:
            place.run(db, "CREATE TABLE effect (points integer)")
        yield place


def consume(place: Place, *records: Message) -> list[bool]:
    """Apply the records in one transaction."""
    with place.local() as db:
        return [apply(place, db, record) for record in records]


def apply(place: Place, db: Any, record: Message) -> bool:
    first = bool(place.tool.first_time(db, record))
    if first:
        place.run(db, "INSERT INTO effect VALUES (100)")
    return first


def effects(place: Place) -> int:
    with place.local() as db:
        return int(place.run(db, "SELECT count(*) FROM effect")[0])


def test_a_record_that_is_delivered_again_has_no_second_effect(place: Place) -> None:
    one, other = make_record(), make_record("m-2")
    assert consume(place, one, one, other) == [True, False, True]
    assert consume(place, other, one) == [False, False]
    assert effects(place) == 2


def test_a_transaction_that_rolls_back_leaves_the_record_to_be_applied(place: Place) -> None:
    with suppress(Interrupted), place.local() as db:
        apply(place, db, make_record())
        raise Interrupted
    assert effects(place) == 0
    assert consume(place, make_record()) == [True]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_consumer_waits_for_another_one_that_applies_the_same_record(
    local_database: str, end: str
) -> None:
    inbox, connect = PsycopgInbox(CONSUMER), psycopg.connect
    with connect(local_database) as one, connect(local_database) as other:
        inbox.create_table(one)
        inbox.first_time(other, make_record())
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(inbox.first_time, one, make_record())
            wait_for(lambda: waits_for_a_lock(local_database))
            getattr(other, end)()
            assert waiting.result(timeout=30) == (end == "rollback")


def test_another_consumer_has_rows_of_its_own_also_in_a_purge(place: Place) -> None:
    consume(place, make_record("old"))
    with place.local() as db:
        place.run(db, "UPDATE outbox_inbox SET applied_at = '2026-01-01 00:00:00+00:00'")
        place.run(
            db, "INSERT INTO outbox_inbox SELECT 'mail', message_id, applied_at FROM outbox_inbox"
        )
    consume(place, make_record("young"))
    assert [place.tool.purge(place.db, WEEK) for _ in range(2)] == [1, 0]
    assert consume(place, make_record("young"), make_record("old")) == [False, True]
    with pytest.raises(ValueError, match="7 days"):
        place.tool.purge(place.db, timedelta(days=6))


def test_outside_a_transaction_the_row_would_be_stored_alone_and_is_refused(
    local_database: str,
) -> None:
    inbox = PsycopgInbox(CONSUMER)
    with psycopg.connect(local_database, autocommit=True) as connection:
        inbox.create_table(connection)
        with pytest.raises(DatabaseUnsupported):
            inbox.first_time(connection, make_record())
        with connection.transaction(), connection.cursor() as cursor:
            assert inbox.first_time(cursor, make_record())


def test_in_a_pipeline_the_answer_is_the_same(local_database: str) -> None:
    inbox = PsycopgInbox(CONSUMER)
    with psycopg.connect(local_database) as connection:
        inbox.create_table(connection)
        with connection.pipeline():
            assert [inbox.first_time(connection, make_record()) for _ in "ab"] == [True, False]
