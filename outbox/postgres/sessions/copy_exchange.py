"""A transaction that ends with a COPY, in two round trips.

PostgreSQL runs the statements of one message in turn and stops at the COPY, so their answers arrive
together with its readiness to copy. The second message has the rows; the rest of the first one,
such as COMMIT, follows them. psycopg has no call for this, so these generators use its libpq layer.
After a failure the connection has no transaction; one that was cancelled in between is not usable,
and its pool closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psycopg import errors, generators
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.waiting import Wait

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult


async def begin_copy(connection: AsyncConnection[Any], statements: bytes) -> Sequence[PGresult]:
    """Run the statements up to their COPY; return their answers. Raises psycopg's errors."""
    return await connection.wait(_begin(connection.pgconn, statements))


async def end_copy(connection: AsyncConnection[Any], data: bytes) -> None:
    """Send the rows and run what follows the COPY. Raises psycopg's errors."""
    await connection.wait(_end(connection.pgconn, data))


def _begin(pgconn: PGconn, statements: bytes) -> PQGen[list[PGresult]]:
    pgconn.send_query(statements)
    answers: list[PGresult] = yield from generators.execute(pgconn)
    yield from _refuse_failed(pgconn, answers)
    return answers


def _end(pgconn: PGconn, data: bytes) -> PQGen[None]:
    yield from generators.copy_to(pgconn, data, flush=False)
    while pgconn.put_copy_end() == 0:
        while not (yield Wait.W):
            continue
    answers = yield from generators.execute(pgconn)
    yield from _refuse_failed(pgconn, answers)


def _refuse_failed(pgconn: PGconn, answers: Sequence[PGresult]) -> PQGen[None]:
    """Roll back and raise what the server has refused."""
    refused = [each for each in answers if each.status == ExecStatus.FATAL_ERROR]
    if not refused:
        return
    if pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
        pgconn.send_query(b"ROLLBACK")
        yield from generators.execute(pgconn)
    raise errors.error_from_result(refused[0])
