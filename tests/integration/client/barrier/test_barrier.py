"""The barrier on real databases: one row, and the first commit wins."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy

from outbox_client import (
    DatabaseUnsupported,
    LocalTransactionState,
    PreparedMessage,
    TransactionFenced,
)
from outbox_client.async_sqlalchemy import AsyncSqlAlchemyBarrier
from outbox_client.psycopg import CREATE_TABLE, AsyncPsycopgBarrier, PsycopgBarrier
from outbox_client.sqlalchemy import SqlAlchemyBarrier
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_places import (
    ON_POSTGRES,
    PLACES,
    Place,
    named,
    place_for,
    psycopg_place,
    waits_for_a_lock,
)
from tests.integration.client.fixtures_prepared import NOW, make_check, make_prepared

COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK
UNKNOWN = LocalTransactionState.UNKNOWN
PATIENCE = timedelta(milliseconds=300)

pytestmark = pytest.mark.postgres


BARRIERS: dict[str, Callable[[timedelta], Any]] = {
    "psycopg": PsycopgBarrier,
    "sqlalchemy": SqlAlchemyBarrier,
    "psycopg async": AsyncPsycopgBarrier,
    "sqlalchemy async": AsyncSqlAlchemyBarrier,
    "sqlite": SqlAlchemyBarrier,
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    tools = {name: barrier(PATIENCE) for name, barrier in BARRIERS.items()}
    with place_for(request, tools) as place:
        with place.local() as db:
            place.run(db, "CREATE TABLE payment (id integer PRIMARY KEY)")
        yield place


def payments(place: Place) -> int:
    with place.local() as db:
        return int(place.run(db, "SELECT count(*) FROM payment")[0])


def pay(place: Place, db: Any, prepared: PreparedMessage) -> None:
    place.run(db, "INSERT INTO payment VALUES (1)")
    place.tool.record(db, prepared)


@pytest.mark.parametrize("adapter", ON_POSTGRES)
def test_processes_that_start_together_all_have_the_table(
    adapter: str, local_database: str
) -> None:
    with (
        ON_POSTGRES[adapter](local_database, BARRIERS[adapter](PATIENCE)) as place,
        ThreadPoolExecutor(1) as thread,
        psycopg.connect(local_database) as other_process,
    ):
        other_process.execute(CREATE_TABLE.encode())
        creating = thread.submit(place.tool.create_table, place.db)
        wait_for(lambda: waits_for_a_lock(local_database))
        other_process.commit()
        creating.result(timeout=30)
        assert place.tool.check(place.db, make_check()) == ROLLBACK


def test_a_recorded_message_is_committed(place: Place) -> None:
    with place.local() as db:
        pay(place, db, make_prepared())
    assert place.tool.check(place.db, make_check()) == COMMIT


def test_a_message_without_a_record_is_fenced_and_rolled_back(place: Place) -> None:
    answers = [place.tool.check(place.db, make_check()) for _ in range(2)]
    assert answers == [ROLLBACK, ROLLBACK]


def test_after_the_fence_the_local_transaction_cannot_commit(place: Place) -> None:
    place.tool.check(place.db, make_check())
    with pytest.raises(TransactionFenced) as caught, place.local() as db:
        pay(place, db, make_prepared())
    assert caught.value.message_id == "m-1"
    assert payments(place) == 0


def test_a_check_waits_for_an_open_local_transaction_and_then_is_unknown(place: Place) -> None:
    with place.local() as db:
        pay(place, db, make_prepared())
        assert place.tool.check(place.db, make_check()) == UNKNOWN
    assert place.tool.check(place.db, make_check()) == COMMIT


def test_a_check_that_waited_for_the_local_transaction_answers_what_it_committed(
    local_database: str, subtests: pytest.Subtests
) -> None:
    """A row that was read before the fence is older than the fence: it proves nothing."""
    for message_id, open_place in ON_POSTGRES.items():
        patient = BARRIERS[message_id](timedelta(seconds=60))
        with open_place(local_database, patient) as place:
            place.tool.create_table(place.db)
            with ThreadPoolExecutor(1) as threads, subtests.test(message_id):
                with place.local() as db:
                    place.tool.record(db, make_prepared(message_id))
                    checked = threads.submit(place.tool.check, place.db, make_check(message_id))
                    wait_for(lambda: waits_for_a_lock(local_database))
                assert checked.result(60) == COMMIT


def test_a_message_recorded_twice_is_refused_the_second_time(place: Place) -> None:
    with place.local() as db:
        pay(place, db, make_prepared())
    with pytest.raises(TransactionFenced), place.local() as db:
        place.tool.record(db, make_prepared())
    assert place.tool.check(place.db, make_check()) == COMMIT


def age_rows(place: Place, days: int) -> None:
    moment = (NOW - timedelta(days=days)).strftime("%Y-%m-%d %H:%M:%S")
    with place.local() as db:
        place.run(db, f"UPDATE outbox_barrier SET created_at = '{moment}'")


def test_a_record_is_no_older_than_its_prepare_however_long_ago_the_transaction_began(
    place: Place,
) -> None:
    """Else a purge could delete it while a check of its message still takes a fence for a proof."""
    with place.local() as db:
        place.run(db, "SELECT count(*) FROM payment")
        on_sqlite = isinstance(place.db, sqlalchemy.Engine) and place.db.dialect.name == "sqlite"
        now = "CURRENT_TIMESTAMP" if on_sqlite else "clock_timestamp()"
        (prepared_at,) = place.run(db, f"SELECT {now}")
        place.tool.record(db, make_prepared())
        (recorded_at,) = place.run(db, "SELECT created_at FROM outbox_barrier")
    assert recorded_at >= prepared_at


def test_a_purge_deletes_old_rows_only(place: Place) -> None:
    for name in ("old-1", "old-2"):
        place.tool.check(place.db, make_check(name))
    age_rows(place, days=9)
    with place.local() as db:
        pay(place, db, make_prepared("young"))
    assert place.tool.purge(place.db, timedelta(days=8)) == 2
    assert place.tool.check(place.db, make_check("young")) == COMMIT
    assert place.tool.purge(place.db, timedelta(days=8)) == 0


def test_after_a_purge_an_old_message_is_unknown_and_never_rolled_back(place: Place) -> None:
    long_ago = NOW - timedelta(days=9)
    with place.local() as db:
        pay(place, db, make_prepared())
    age_rows(place, days=9)
    place.tool.purge(place.db, timedelta(days=8))
    place.tool.purge(place.db, timedelta(days=30))
    assert place.tool.check(place.db, make_check(prepared_at=long_ago)) == UNKNOWN
    assert place.tool.check(place.db, make_check("young")) == ROLLBACK


def test_recording_outside_a_transaction_is_refused(local_database: str) -> None:
    engine = sqlalchemy.create_engine(named(local_database), isolation_level="AUTOCOMMIT")
    SqlAlchemyBarrier().create_table(engine)
    with engine.connect() as connection, pytest.raises(DatabaseUnsupported):
        SqlAlchemyBarrier().record(connection, make_prepared())
    engine.dispose()
    with psycopg.connect(local_database, autocommit=True) as plain:
        with pytest.raises(DatabaseUnsupported):
            PsycopgBarrier().record(plain, make_prepared())
        with plain.transaction():
            PsycopgBarrier().record(plain, make_prepared())


def test_checking_on_a_connection_in_a_transaction_is_refused(local_database: str) -> None:
    with psycopg.connect(local_database) as connection:
        connection.execute("SELECT 1")
        with pytest.raises(DatabaseUnsupported):
            PsycopgBarrier().check(connection, make_check())


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql+pymysql://h/d"])
def test_an_unsupported_database_is_refused(url: str) -> None:
    engine = sqlalchemy.create_engine(url, module=sqlite3)
    with pytest.raises(DatabaseUnsupported):
        SqlAlchemyBarrier().check(engine, make_check())
    engine.dispose()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_stricter_default_isolation_changes_no_answer(local_database: str, level: str) -> None:
    with psycopg.connect(local_database, autocommit=True) as admin:
        name = admin.info.dbname
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    with psycopg_place(local_database, PsycopgBarrier(PATIENCE)) as place:
        place.tool.create_table(place.db)
        with place.local() as db:
            place.tool.record(db, make_prepared())
        assert place.tool.check(place.db, make_check()) == COMMIT
        assert place.tool.check(place.db, make_check("m-2")) == ROLLBACK


async def test_recording_asynchronously_outside_a_transaction_is_refused(
    local_database: str,
) -> None:
    connect = psycopg.AsyncConnection.connect
    async with await connect(local_database, autocommit=True) as connection:
        with pytest.raises(DatabaseUnsupported, match="inside a transaction"):
            await AsyncPsycopgBarrier().record(connection, make_prepared())
