"""The stored views of topics, in the table of their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from outbox.messages.topics import SeenTopic
from outbox.postgres.sessions.reads import rows_from
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)


class PostgresSeenTopics:
    """The stored views on a pool. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def all(self) -> Mapping[str, SeenTopic]:
        """Return the stored view of every topic that ever had a message."""
        rows = await rows_from(self._pool, SQL["all"], {})
        return {row.pop("name"): SeenTopic(**row) for row in rows}

    async def store(self, seen: Mapping[str, SeenTopic]) -> None:
        """Store new views."""
        columns = zip(SeenTopic._fields, map(list, zip(*seen.values(), strict=True)), strict=True)
        await rows_from(self._pool, SQL["store"], {"names": list(seen), **dict(columns)})

    async def note_growth(self, topic: str, before: int, after: int) -> None:
        """Tell operators that a topic has more partitions: an audit row."""
        asked = {"topic": topic, "before": before, "after": after}
        await rows_from(self._pool, SQL["note_growth"], asked)
