"""Places: a database that one adapter of the client uses; the asynchronous ones look the same."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import sqlalchemy
from anyio.from_thread import BlockingPortal, start_blocking_portal
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Place:
    """A database; ``tool`` is the barrier or the inbox, and ``run`` returns the first row."""

    tool: Any
    db: Any
    local: Callable[[], AbstractContextManager[Any]]
    run: Callable[[Any, str], Any]


@contextmanager
def psycopg_place(url: str, tool: Any) -> Iterator[Place]:
    """Yield a place for connections of psycopg."""

    @contextmanager
    def local() -> Iterator[Any]:
        with psycopg.connect(url) as connection:
            yield connection

    def run(db: Any, statement: str) -> Any:
        cursor = db.execute(statement)
        return cursor.fetchone() if cursor.description else None

    with ConnectionPool(url, min_size=1, max_size=4, open=True) as pool:
        yield Place(tool, pool, local, run)


@contextmanager
def sqlalchemy_place(url: str, tool: Any) -> Iterator[Place]:
    """Yield a place for sessions of SQLAlchemy."""
    engine = sqlalchemy.create_engine(named(url))

    @contextmanager
    def local() -> Iterator[Any]:
        with Session(engine) as session, session.begin():
            yield session

    def run(db: Any, statement: str) -> Any:
        result = db.execute(sqlalchemy.text(statement))
        return result.fetchone() if result.returns_rows else None

    yield Place(tool, engine, local, run)
    engine.dispose()


@contextmanager
def async_psycopg_place(url: str, tool: Any) -> Iterator[Place]:
    """Yield a place for asynchronous connections of psycopg."""
    with start_blocking_portal() as loop:

        @contextmanager
        def local() -> Iterator[Any]:
            connect: Any = psycopg.AsyncConnection.connect
            opened = loop.call(connect, url)
            with loop.wrap_async_context_manager(opened) as connection:
                yield connection

        def run(db: Any, statement: str) -> Any:
            cursor = loop.call(db.execute, statement)
            return loop.call(cursor.fetchone) if cursor.description else None

        pool: Any = AsyncConnectionPool(url, min_size=1, max_size=4, open=False)
        with loop.wrap_async_context_manager(pool):
            yield Place(OnLoop(loop, tool), pool, local, run)


@contextmanager
def async_sqlalchemy_place(url: str, tool: Any) -> Iterator[Place]:
    """Yield a place for asynchronous sessions of SQLAlchemy."""
    with start_blocking_portal() as loop:
        engine = create_async_engine(named(url))

        @contextmanager
        def local() -> Iterator[Any]:
            with (
                loop.wrap_async_context_manager(AsyncSession(engine)) as session,
                loop.wrap_async_context_manager(session.begin()),
            ):
                yield session

        def run(db: Any, statement: str) -> Any:
            result = loop.call(db.execute, sqlalchemy.text(statement))
            return result.fetchone() if result.returns_rows else None

        yield Place(OnLoop(loop, tool), engine, local, run)
        loop.call(engine.dispose)


ON_POSTGRES: dict[str, Callable[[str, Any], AbstractContextManager[Place]]] = {
    "psycopg": psycopg_place,
    "sqlalchemy": sqlalchemy_place,
    "psycopg async": async_psycopg_place,
    "sqlalchemy async": async_sqlalchemy_place,
}
PLACES = {**ON_POSTGRES, "sqlite": sqlalchemy_place}


@contextmanager
def place_for(request: pytest.FixtureRequest, tools: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the place that the test's parameter names, with the tables of its tool."""
    if request.param == "sqlite":
        url = f"sqlite:///{request.getfixturevalue('tmp_path')}/local.db"
    else:
        url = request.getfixturevalue("local_database")
    with PLACES[request.param](url, tools[request.param]) as place:
        place.tool.create_table(place.db)
        yield place


def named(url: str) -> str:
    """Return a URL that names its driver, as SQLAlchemy takes it."""
    return url.replace("postgresql:", "postgresql+psycopg:")


def waits_for_a_lock(url: str) -> bool:
    """Return whether a session of this database waits for a lock."""
    with psycopg.connect(url) as connection:
        statement = (
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')"
        )
        row = connection.execute(statement).fetchone()
    return row is not None and bool(row[0])


@dataclass(frozen=True, slots=True)
class OnLoop:
    """An asynchronous tool, called from any thread."""

    loop: BlockingPortal
    tool: Any

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.loop.call(getattr(self.tool, name), *arguments)
