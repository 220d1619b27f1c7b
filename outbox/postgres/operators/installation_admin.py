"""The identity and the ids of this database: a copy is renewed, a restored one rebased; audited."""

from __future__ import annotations

from typing import Final, NamedTuple

import psycopg

from outbox.errors import SessionsOpen
from outbox.messages.message_id import LEAF_BITS
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.audit_log import audit_entry
from outbox.postgres.relay.commit_log import hold_shards
from outbox.postgres.sessions.availability import unavailable_on
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.verified_sessions import read_id_counter
from outbox.relay.protocol.state import HaltReason

SQL: Final = load(__name__)


def renew_installation(database_url: str, action: OperatorAction) -> dict[str, str]:
    """Renew the id and halt every shard as `cluster_changed`; return the ids ``was`` and ``now``.

    Positions stay unchanged: what the original database has published is not published again.
    Raises SessionsOpen while a relay of this database has a shard, and DatabaseUnavailable.
    """
    with (
        unavailable_on(psycopg.Error),
        connect(database_url, "cli") as session,
        session.transaction(),
    ):
        held = hold_shards(session)
        if held:
            raise SessionsOpen([f"outbox-relay-{shard}" for shard in held])
        [(was, now)] = session.execute(SQL["renew"])
        session.execute(SQL["halt_all"], {"reason": HaltReason.CLUSTER_CHANGED.value})
        renewed = {"was": str(was), "now": str(now)}
        session.execute(*audit_entry("installation.renew", f"installation {now}", action, renewed))
    return renewed


class Rebase(NamedTuple):
    """The base before and after, and the highest id that was stored."""

    was: int
    now: int
    highest: int


def rebase_installation(database_url: str, action: OperatorAction) -> Rebase:
    """Raise the base if ids of this cluster would be too low, in one transaction; audited.

    Counters of generated keys that are behind are raised too. The next id is then the first of a
    leaf, with one whole leaf between it and every stored id. Raises SessionsOpen while a program
    uses the database, and DatabaseUnavailable.
    """
    with unavailable_on(psycopg.Error), connect(database_url, "cli") as session:
        try:
            with session.transaction():
                return _rebase(session, action)
        except psycopg.errors.LockNotAvailable:
            raise SessionsOpen(["a transaction that reads or writes its tables"]) from None


def _rebase(session: Connection, action: OperatorAction) -> Rebase:
    _close_to_others(session)
    session.execute(SQL["raise_counters"])
    counter = read_id_counter(session)
    [(base, seen_in_kafka)] = session.execute(SQL["base"])
    if not counter.is_behind:
        return Rebase(base, base, counter.highest)
    leaf = (max(counter.highest, seen_in_kafka) >> LEAF_BITS) + 2
    [(was, now)] = session.execute(SQL["rebase"], {"leaf": leaf})
    rebase = Rebase(was, now, counter.highest)
    session.execute(SQL["create_leaves"], {"leaf": leaf})
    entry = audit_entry("installation.rebase", "installation", action, rebase._asdict())
    session.execute(*entry)
    return rebase


def _close_to_others(session: Connection) -> None:
    """Keep every program, a relay too, from taking an id until the transaction ends."""
    programs = [row[0] for row in session.execute(SQL["sessions"])]
    if programs:
        raise SessionsOpen(programs)
    session.execute(SQL["close"])
