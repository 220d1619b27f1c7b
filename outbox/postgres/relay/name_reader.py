"""Reads the interned names of topics and groups, on a relay's session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)


def read_topic_names(session: Connection, ids: Iterable[int]) -> dict[int, str]:
    """Return topic names by id."""
    return dict(session.execute(SQL["topic_names"], {"ids": list(ids)}).fetchall())


def read_group_names(session: Connection, ids: Iterable[int]) -> dict[int, str]:
    """Return producer group names by id."""
    return dict(session.execute(SQL["group_names"], {"ids": list(ids)}).fetchall())
