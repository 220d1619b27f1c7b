"""A short-lived cache of names and interned ids, so that a prepare rarely reads PostgreSQL.

A changed group setting takes effect within a second in every process. A topic's id changes only
with the loss of what a failed PostgreSQL had not replicated: the next one may give it to another
topic. So it is read again as often.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from api.http.fresh_values import FreshValues
from outbox.access import Caller
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from outbox.postgres.messages.interned_names import PostgresInternedNames

FRESH_SECONDS: Final = 1.0


class NameCache:
    """Producer groups by name, topic ids by name, group names by id."""

    def __init__(self, names: PostgresInternedNames, clock: Clock) -> None:
        self._names = names
        self._clock = clock
        self._groups = FreshValues(names.groups, clock, FRESH_SECONDS)
        self._group_ids = FreshValues(names.group_ids, clock, FRESH_SECONDS)
        self._topics = FreshValues(names.intern_topics, clock, FRESH_SECONDS)
        self._group_names: dict[int, str] = {}

    async def groups(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        """Return those of these groups that are registered; raises DatabaseUnavailable."""
        return await self._groups.get(names)

    def forget_groups(self) -> None:
        """Read every group again at its next use, because one has changed."""
        self._groups.forget(lambda _: True)
        self._group_ids.forget(lambda _: True)

    async def topic_ids(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of these topics; intern the new ones. Raises DatabaseUnavailable.

        Interning may wait for a transaction that interns the same name, and delays no other caller.
        """
        new = [name for name in names if name not in self._topics]
        if new:
            began = self._clock.monotonic()
            self._topics.keep(new, await self._names.intern_topics(new), began)
        return await self._topics.get(names)

    async def group_ids(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups a caller is bound to; None means every group.

        What a deleted group has left is still its own.
        """
        if caller.groups is None:
            return None
        return frozenset((await self._group_ids.get(caller.groups)).values())

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return the names of groups by id, deleted ones included.

        They are metric labels. While PostgreSQL is down, names not yet loaded are missing.
        """
        missing = [group_id for group_id in ids if group_id not in self._group_names]
        if missing:
            with suppress(DatabaseUnavailable):
                self._group_names.update(await self._names.group_names(missing))
        return self._group_names
