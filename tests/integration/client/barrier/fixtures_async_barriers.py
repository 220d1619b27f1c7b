"""The asynchronous barriers behind the face of the others: each test is theirs too."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread
from typing import Any, ClassVar

import psycopg
import sqlalchemy
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from outbox_client import Check, LocalTransactionState, PreparedMessage
from outbox_client.async_sqlalchemy import AsyncSqlAlchemyBarrier
from outbox_client.psycopg import AsyncPsycopgBarrier


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


class BarrierOnLoop:
    """An asynchronous barrier, called from any thread."""

    loop: ClassVar[Loop]
    kind: ClassVar[Callable[[timedelta], Any]]

    def __init__(self, lock_timeout: timedelta) -> None:
        self._barrier = type(self).kind(lock_timeout)

    def record(self, db: Any, prepared: PreparedMessage) -> None:
        self._call(self._barrier.record(db, prepared))

    def check(self, db: Any, check: Check) -> LocalTransactionState:
        state: LocalTransactionState = self._call(self._barrier.check(db, check))
        return state

    def create_table(self, db: Any) -> None:
        self._call(self._barrier.create_table(db))

    def purge(self, db: Any, older_than: timedelta) -> int:
        return int(self._call(self._barrier.purge(db, older_than)))

    def _call(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.call(call)


@contextmanager
def async_psycopg_parts(url: str, patience: timedelta) -> Iterator[tuple[Any, ...]]:
    """Yield barrier, pool, the local transaction's context and how a statement is run."""
    with running_loop() as loop:
        kinds = {"loop": loop, "kind": staticmethod(AsyncPsycopgBarrier)}
        barrier = type("AsyncPsycopgOnLoop", (BarrierOnLoop,), kinds)(patience)

        @contextmanager
        def local() -> Iterator[Any]:
            with loop.opened(loop.call(psycopg.AsyncConnection.connect(url))) as connection:
                yield connection

        def run(db: Any, statement: str) -> Any:
            cursor = loop.call(db.execute(statement))
            return loop.call(cursor.fetchone()) if cursor.description else None

        pool: Any = AsyncConnectionPool(url, min_size=1, max_size=4, open=False)
        with loop.opened(pool):
            yield barrier, pool, local, run


@contextmanager
def async_sqlalchemy_parts(url: str, patience: timedelta) -> Iterator[tuple[Any, ...]]:
    """Yield the same parts on an asynchronous engine."""
    with running_loop() as loop:
        kinds = {"loop": loop, "kind": staticmethod(AsyncSqlAlchemyBarrier)}
        barrier = type("AsyncSqlAlchemyOnLoop", (BarrierOnLoop,), kinds)(patience)
        engine = create_async_engine(url)

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

        yield barrier, engine, local, run
        loop.call(engine.dispose())
