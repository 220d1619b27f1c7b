"""Places: a database that one adapter of the client uses; the asynchronous ones look the same."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

import psycopg
import sqlalchemy
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
    with running_loop() as loop:

        @contextmanager
        def local() -> Iterator[Any]:
            with loop.opened(loop.call(psycopg.AsyncConnection.connect(url))) as connection:
                yield connection

        def run(db: Any, statement: str) -> Any:
            cursor = loop.call(db.execute(statement))
            return loop.call(cursor.fetchone()) if cursor.description else None

        pool: Any = AsyncConnectionPool(url, min_size=1, max_size=4, open=False)
        with loop.opened(pool):
            yield Place(OnLoop(loop, tool), pool, local, run)


@contextmanager
def async_sqlalchemy_place(url: str, tool: Any) -> Iterator[Place]:
    """Yield a place for asynchronous sessions of SQLAlchemy."""
    with running_loop() as loop:
        engine = create_async_engine(named(url))

        @contextmanager
        def local() -> Iterator[Any]:
            with (
                loop.opened(AsyncSession(engine)) as session,
                loop.opened(session.begin()),
            ):
                yield session

        def run(db: Any, statement: str) -> Any:
            result = loop.call(db.execute(sqlalchemy.text(statement)))
            return result.fetchone() if result.returns_rows else None

        yield Place(OnLoop(loop, tool), engine, local, run)
        loop.call(engine.dispose())


ON_POSTGRES: dict[str, Callable[[str, Any], AbstractContextManager[Place]]] = {
    "psycopg": psycopg_place,
    "sqlalchemy": sqlalchemy_place,
    "psycopg async": async_psycopg_place,
    "sqlalchemy async": async_sqlalchemy_place,
}
PLACES = {**ON_POSTGRES, "sqlite": sqlalchemy_place}


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
class Loop:
    """An event loop in a thread of its own."""

    loop: asyncio.AbstractEventLoop

    def call(self, call: Awaitable[Any]) -> Any:
        """Await ``call`` on the loop; return its result here."""

        async def awaited() -> Any:
            return await call

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result()

    @contextmanager
    def opened(self, context: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
        """Enter an asynchronous context on the loop, for a block of this thread."""
        entered = self.call(context.__aenter__())
        try:
            yield entered
        except BaseException as error:
            self.call(context.__aexit__(type(error), error, error.__traceback__))
            raise
        self.call(context.__aexit__(None, None, None))


@contextmanager
def running_loop() -> Iterator[Loop]:
    """Run an event loop until the block ends."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield Loop(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass(frozen=True, slots=True)
class OnLoop:
    """An asynchronous tool, called from any thread."""

    loop: Loop
    tool: Any

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.loop.call(getattr(self.tool, name)(*arguments))
