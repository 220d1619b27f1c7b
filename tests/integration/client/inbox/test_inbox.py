"""The inbox on real databases: the row and the effect are stored together, once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from confluent_kafka import Message

from outbox_client import DatabaseUnsupported
from outbox_client.inbox.async_sqlalchemy import AsyncSqlAlchemyInbox
from outbox_client.inbox.psycopg import AsyncPsycopgInbox, PsycopgInbox
from outbox_client.inbox.sqlalchemy import SqlAlchemyInbox
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_places import (
    ON_POSTGRES,
    PLACES,
    Place,
    named,
    waits_for_a_lock,
)

pytestmark = pytest.mark.postgres

INBOXES: dict[str, Callable[[str], Any]] = {
    "psycopg": PsycopgInbox,
    "sqlalchemy": SqlAlchemyInbox,
    "psycopg async": AsyncPsycopgInbox,
    "sqlalchemy async": AsyncSqlAlchemyInbox,
    "sqlite": SqlAlchemyInbox,
}
CONSUMER = "member-service"
WEEK = timedelta(days=7)


class Interrupted(Exception):
    """The consumer dies in its transaction."""


def make_record(name: str = "m-1") -> Message:
    return Message(topic="points", headers=[("outbox_message_id", name.encode())], value=b"100")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/local.db"
    else:
        url = request.getfixturevalue("local_database")
    with PLACES[request.param](url, INBOXES[request.param](CONSUMER)) as place:
        place.tool.create_table(place.db)
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
    def die() -> None:
        with place.local() as db:
            apply(place, db, make_record())
            raise Interrupted

    with pytest.raises(Interrupted):
        die()
    assert effects(place) == 0
    assert consume(place, make_record()) == [True]


def test_another_consumer_of_the_same_database_applies_the_record_too(local_database: str) -> None:
    for consumer in ("points", "mail"):
        with PLACES["psycopg"](local_database, PsycopgInbox(consumer)) as place:
            place.tool.create_table(place.db)
            with place.local() as db:
                assert place.tool.first_time(db, make_record())


@pytest.mark.parametrize("adapter", ON_POSTGRES)
@pytest.mark.parametrize("commits", [True, False])
def test_a_consumer_waits_for_another_one_that_applies_the_same_record(
    local_database: str, adapter: str, commits: bool
) -> None:
    with (
        PLACES[adapter](local_database, INBOXES[adapter](CONSUMER)) as place,
        ThreadPoolExecutor(1) as thread,
        psycopg.connect(local_database) as other,
    ):
        place.tool.create_table(place.db)
        other.execute("CREATE TABLE effect (points integer)")
        other.commit()
        assert PsycopgInbox(CONSUMER).first_time(other, make_record())
        waiting = thread.submit(consume, place, make_record())
        wait_for(lambda: waits_for_a_lock(local_database))
        (other.commit if commits else other.rollback)()
        assert waiting.result(timeout=30) == [not commits]


def test_a_purge_deletes_old_rows_of_its_own_consumer_only(place: Place) -> None:
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
    engine = sqlalchemy.create_engine(named(local_database), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(DatabaseUnsupported):
        SqlAlchemyInbox(CONSUMER).first_time(connection, make_record())
    engine.dispose()
    with psycopg.connect(local_database, autocommit=True) as plain:
        PsycopgInbox(CONSUMER).create_table(plain)
        with pytest.raises(DatabaseUnsupported):
            PsycopgInbox(CONSUMER).first_time(plain, make_record())
        with plain.transaction(), plain.cursor() as cursor:
            assert PsycopgInbox(CONSUMER).first_time(cursor, make_record())


async def test_asynchronously_outside_a_transaction_it_is_refused_as_well(
    local_database: str,
) -> None:
    connect = psycopg.AsyncConnection.connect
    async with await connect(local_database, autocommit=True) as connection:
        with pytest.raises(DatabaseUnsupported):
            await AsyncPsycopgInbox(CONSUMER).first_time(connection, make_record())


def test_in_a_pipeline_the_answer_is_the_same(local_database: str) -> None:
    inbox = PsycopgInbox(CONSUMER)
    with psycopg.connect(local_database) as connection:
        inbox.create_table(connection)
        with connection.pipeline():
            assert [inbox.first_time(connection, make_record()) for _ in "ab"] == [True, False]


def test_a_database_that_is_not_tested_is_refused() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.begin() as connection, pytest.raises(DatabaseUnsupported):
        SqlAlchemyInbox(CONSUMER).first_time(connection, make_record())
    engine.dispose()
