"""Connections to PostgreSQL, opened with the settings that the guarantees need.

``synchronous_commit=on`` makes an acknowledged commit durable (G1); UTC keeps times comparable. The
database may be shared: settings that are meant for its other programs must not change what our
statements mean, nor hide a warning or rows from us (``AS_WRITTEN``). The sessions of the API and of
relays plan a statement once: partitions are pruned when it runs, and a plan per call costs more
than the call, the more so with many leaves. Reads of a slice of a backlog plan for each call, and
so do all other sessions. Client and server give up a host that is gone: a session that stays would
keep its locks, and its transaction all relays from reading on. A server that is there and silent is
given up too (``answer_limit``). There is one asyncio pool per process, and a connection for each of
the relay's threads. Only the pool listens for standby waits that were given up. The relay
acknowledges nothing, and what it loses by a failover is restored from the manifests in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from time import monotonic
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from outbox.errors import UnsafeServer
from outbox.postgres.sessions.answer_limit import (
    LimitedAsyncConnection,
    LimitedConnection,
    NoAnswer,
)
from outbox.postgres.sessions.availability import RIGHTS_LOST
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.sync_replication import CommitUnconfirmed, note_given_up_waits

SQL: Final = load(__name__)
GONE_MS: Final = 19_000
"""As long as the keepalives take, but for a host that vanishes while something is sent to it:
without this, Linux would send it again for a quarter of an hour."""
NO_LIMITS: Final = "-c statement_timeout=0 -c lock_timeout=0"
"""The options of the URL come after these: limits that are meant for us stand there."""
AS_WRITTEN: Final = (
    r"-c default_transaction_isolation=read\ committed -c extra_float_digits=1"
    " -c intervalstyle=postgres -c bytea_output=hex -c array_nulls=on"
    " -c standard_conforming_strings=on -c quote_all_identifiers=off"
    " -c search_path=pg_catalog -c client_min_messages=warning -c row_security=off"
)
"""A snapshot per statement, also after a wait for a lock; the text forms of values; each warning,
because one reports a commit without its standby; and an error where a policy would hide rows."""
SESSION_OPTIONS: Final = (
    "-c idle_in_transaction_session_timeout=60000 -c jit=off"
    " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3"
    f" -c tcp_user_timeout={GONE_MS} -c client_connection_check_interval=1000"
    " -c plan_cache_mode="
)
"""A session that its client has closed ends within a second, also in a statement or behind a lock.
By itself PostgreSQL notices at the answer, and would go on with each statement that was given up.
"""
PLAN_EACH_CALL: Final = "force_custom_plan"
PLAN_ONCE: Final = "force_generic_plan -c enable_seqscan=off"
"""For plans that are made once, while a leaf is empty. A plan that reads it whole costs least then,
if PostgreSQL has analyzed it, and would read the full leaf for as long as the session lives."""
PLAN_ONCE_IN_ORDER: Final = f"{PLAN_ONCE} -c enable_sort=off"
"""The same for the first row of an order: a plan that sorts all rows costs least while there are
none."""
REMOTE_APPLY: Final = "-c synchronous_commit=remote_apply"
"""The one setting above `on`; it is kept when the options of the URL contain it in this form."""

WAIT_SECONDS: Final = 5.0
"""Longest wait for a connection of a pool."""
IDLE_SECONDS: Final = 0.5
"""A connection unused for this long is checked before it is used again."""
CHECK_SECONDS: Final = 2.0
"""Longest wait for the answer to that check."""
RECONNECT_SECONDS: Final = WAIT_SECONDS + 1
"""How long a pool tries to replace a lost connection, with growing pauses: while a caller waits.
After that the next caller lets it try at once."""

AsyncConnection = LimitedAsyncConnection
Connection = psycopg.Connection[Any]
Admit = Callable[[AsyncConnection], Awaitable[None]]
"""Raises UnsafeServer for a session of a server that must not be used."""


def conninfo(
    database_url: str, application: str, plans: str = PLAN_EACH_CALL, *, idle_seconds: int = 0
) -> str:
    """Return the connection string with our session options and a name for pg_stat_activity.

    Options of the URL are kept. Ours come after them and take precedence, except limits of time.
    All take precedence over the settings of the role and the database. ``plans`` is one of
    the PLAN constants. PostgreSQL ends the session after ``idle_seconds`` without a statement; 0:
    never.
    """
    given = str(conninfo_to_dict(database_url).get("options") or "")
    return make_conninfo(
        database_url,
        options=f"-c idle_session_timeout={idle_seconds}s {_options(given)}{plans}",
        application_name=f"outbox-{application}",
        client_encoding="UTF8",
        keepalives_idle=10,
        keepalives_interval=3,
        keepalives_count=3,
        tcp_user_timeout=GONE_MS,
        connect_timeout=5,
    )


def _options(url_options: str) -> str:
    commit = REMOTE_APPLY if REMOTE_APPLY in url_options else "-c synchronous_commit=on"
    return f"{NO_LIMITS} {url_options} {commit} {AS_WRITTEN} {SESSION_OPTIONS}"


class ConfirmingPool(AsyncConnectionPool[AsyncConnection]):
    """A pool whose blocks raise CommitUnconfirmed when a wait for the standby was given up.

    ``admit`` raises UnsafeServer for a server that must not be used; `refusal` is then its text.
    """

    def __init__(
        self, conninfo: str, admit: Admit | None, answer_seconds: float | None, **settings: Any
    ) -> None:
        self._admit = admit
        self._answer_seconds = answer_seconds
        self._stuck_flushes = set[int]()
        """The server processes of flushes that gave no answer: they may wait for a standby."""
        self.refusal: str | None = None
        self.failure: str | None = None
        """Why the last session was not opened."""
        super().__init__(conninfo, configure=self._configure_new, **settings)

    async def _connect(self, timeout: float | None = None) -> AsyncConnection:
        """Note why a session is not opened, which psycopg tells its log alone."""
        try:
            connection = await super()._connect(timeout)
        except Exception as error:
            self.failure = str(error).strip().splitlines()[0] if str(error) else None
            raise
        self.failure = None
        return connection

    async def getconn(self, timeout: float | None = None) -> AsyncConnection:
        """Return a connection. Raises PoolTimeout with the reason for which none was opened."""
        try:
            return await super().getconn(timeout)
        except PoolTimeout as error:
            if self.failure is None:
                raise
            raise PoolTimeout(f"{error}: {self.failure}") from error

    async def _configure_new(self, connection: AsyncConnection) -> None:
        connection.answer_seconds = self._answer_seconds
        note_given_up_waits(connection)
        await connection.execute(SQL["complete_settings"], prepare=False)
        try:
            await _refuse_without_settings(connection)
            if self._admit is not None:
                await self._admit(connection)
        except UnsafeServer as error:
            self.refusal = str(error)
            await connection.close()
            raise
        self.refusal = None

    @asynccontextmanager
    async def flushing(self, connection: AsyncConnection) -> AsyncIterator[None]:
        """Begin no flush if those that gave no answer still have half as many as may be open.

        Without its standby PostgreSQL reads, and each commit waits: the other half is for reads.
        Raises NoAnswer.
        """
        stuck, most = self._stuck_flushes, max(1, self.max_size // 2)
        if len(stuck) >= most:
            cursor = await connection.execute(SQL["still_open"], {"pids": [*stuck]})
            stuck.intersection_update([pid for (pid,) in await cursor.fetchall()])
            if len(stuck) >= most:
                raise NoAnswer(f"{len(stuck)} flushes that gave no answer still wait")
        pid = connection.info.backend_pid
        try:
            yield
        except NoAnswer:
            stuck.add(pid)
            raise

    def use(self) -> tuple[int, int]:
        """Return how many connections are lent or being made, and how many there may be."""
        stats = self.get_stats()
        return stats.get("pool_size", 0) - stats.get("pool_available", 0), self.max_size

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[AsyncConnection]:
        """Lend a connection for the block."""
        async with super().connection(timeout) as connection:
            connection.unconfirmed.clear()
            try:
                yield connection
            except RIGHTS_LOST:
                await connection.close()
                raise
            if connection.unconfirmed:
                raise CommitUnconfirmed(connection.unconfirmed[0])


async def _refuse_without_settings(connection: AsyncConnection) -> None:
    """Raise UnsafeServer for a session that does not have our settings: a pooler ignores them."""
    cursor = await connection.execute(SQL["without_settings"], prepare=False)
    for (commit,) in await cursor.fetchall():
        raise UnsafeServer(
            f"the settings of our sessions do not arrive (synchronous_commit is {commit}): a pooler"
            " ignores `options`. Let it pass them, or name PostgreSQL itself in OUTBOX_DATABASE_URL"
        )


class PoolShare:
    """Lends a part of a pool's connections, so that whoever shares it leaves the others free."""

    def __init__(self, pool: ConfirmingPool, most: int) -> None:
        self._pool = pool
        self._free = asyncio.Semaphore(most)

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[AsyncConnection]:
        """Lend a connection for the block; raises PoolTimeout as the pool does."""
        try:
            async with asyncio.timeout(WAIT_SECONDS if timeout is None else timeout):
                await self._free.acquire()
        except TimeoutError:
            raise PoolTimeout("the share of the pool is in use") from None
        try:
            async with self._pool.connection(timeout) as connection:
                yield connection
        finally:
            self._free.release()


Pool = ConfirmingPool
AnyPool = ConfirmingPool | PoolShare


def make_pool(
    database_url: str,
    application: str,
    *,
    pool_max: int,
    pool_min: int = 2,
    admit: Admit | None = None,
    plans: str = PLAN_EACH_CALL,
    answer_seconds: float | None = None,
) -> Pool:
    """Return a closed pool of autocommit connections; open it with ``async with``.

    ``answer_seconds`` is the longest silence of the server during an exchange.
    """
    return ConfirmingPool(
        conninfo(database_url, application, plans),
        admit,
        answer_seconds,
        connection_class=AsyncConnection,
        min_size=min(pool_min, pool_max),
        max_size=pool_max,
        open=False,
        timeout=WAIT_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
        kwargs={"autocommit": True, "prepare_threshold": 1},
        check=_check_idle,
    )


async def _check_idle(connection: AsyncConnection) -> None:
    """Check a connection that was idle; a connection in use has just shown that it works."""
    now = monotonic()
    if now - connection.lent_at >= IDLE_SECONDS:
        with connection.answering_within(CHECK_SECONDS):
            await AsyncConnectionPool.check_connection(connection)
    connection.lent_at = now


def connect(
    database_url: str,
    application: str,
    plans: str = PLAN_EACH_CALL,
    *,
    answer_seconds: float | None = None,
) -> Connection:
    """Open one autocommit connection for the exclusive use of one thread.

    ``answer_seconds`` is the longest silence of the server during an exchange.
    """
    connection = LimitedConnection.connect(
        conninfo(database_url, application, plans), autocommit=True, prepare_threshold=1
    )
    connection.answer_seconds = answer_seconds
    with ExitStack() as unless_open:
        unless_open.callback(connection.close)
        connection.execute(SQL["complete_settings"], prepare=False)
        unless_open.pop_all()
    return connection
