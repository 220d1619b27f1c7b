"""The writes of producers and the checker to PostgreSQL: flushes begin, commit and abort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.configurations import Configuration
from tests.model.scene import Fault, named
from tests.model.stores.postgres import Database, Ids, begin, end, undecided


class ClientMove(NamedTuple):
    """A possible move of a client's flush."""

    text: str
    database: Database
    cost: Fault | None = None


def client_moves(database: Database, configuration: Configuration) -> Iterator[ClientMove]:
    """Yield every move; the first one, if a flush is open, ends it without a fault."""
    for flush in database.open:
        text = f"flush {flush.xid} of {named(flush.ids)}"
        yield ClientMove(f"{text} commits", end(database, flush, committed=True))
        aborted = end(database, flush, committed=False)
        yield ClientMove(f"{text} aborts", aborted, Fault.ABORT)
    if len(database.open) < configuration.open_flushes:
        for ids in _startable(database, configuration):
            text = f"takes xid {database.next_xid}"
            yield ClientMove(f"COMMIT of {named(ids)} {text}", begin(database, ids, commit=True))
            undone = begin(database, ids, commit=False)
            yield ClientMove(f"ROLLBACK of {named(ids)} {text}", undone, Fault.ROLLBACK)


def _startable(database: Database, configuration: Configuration) -> Iterator[Ids]:
    """Yield the ids of flushes that can begin; new messages begin in the order of their numbers."""
    for message in undecided(database):
        yield (message,)
    for size in configuration.flush_sizes:
        if database.halves + size <= configuration.messages:
            yield tuple(range(database.halves, database.halves + size))
