"""Verifies API keys: one query at a time, for all tokens that came during the last one.

So invented tokens take one connection of the pool, however many there are, and a valid key among
them waits for a few queries. A token is asked about only while somebody waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Final

from outbox.access import ApiKey, ApiKeys
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

Verified = tuple[float, ApiKey | None]
"""When the query began, and the key as it was then."""

QUERY_MAX: Final = 500
"""Most tokens of one query."""
WAITING_MAX: Final = 5000
"""Most tokens that wait, where strangers can invent them: ten queries, and more than a process has
connections by default."""


class _Asked:
    """A token's future, and how many wait for it."""

    def __init__(self) -> None:
        self.verified: asyncio.Future[Verified] = asyncio.get_running_loop().create_future()
        self.waiting = 0

    def fail(self, error: Exception) -> None:
        """Let everybody who waits raise an error."""
        self.verified.set_exception(error)
        self.verified.exception()  # everybody who waited may be gone


class KeyVerifier:
    """The queries of one process for one kind of token.

    ``bounded``: above WAITING_MAX waiting tokens the oldest one is given up.
    """

    def __init__(self, keys: ApiKeys, clock: Clock, *, bounded: bool = False) -> None:
        self._keys = keys
        self._clock = clock
        self._bounded = bounded
        self._next: dict[str, _Asked] = {}
        """What the next queries ask about, the oldest first."""
        self._begun: dict[str, _Asked] = {}
        """What the query of now asks about, as long as newcomers may share it."""
        self._running: asyncio.Task[None] | None = None

    async def verify(self, token: str) -> Verified:
        """Return the key of a token, or None, and its age; raises DatabaseUnavailable."""
        asked = self._begun.get(token) or self._next.get(token) or self._join(token)
        asked.waiting += 1
        try:
            return await asyncio.shield(asked.verified)
        finally:
            asked.waiting -= 1
            if not asked.waiting and self._next.get(token) is asked:
                del self._next[token]

    def forget(self) -> None:
        """Let nobody who comes from now on share a query that has begun before."""
        self._begun = {}

    def _join(self, token: str) -> _Asked:
        if self._bounded and len(self._next) >= WAITING_MAX:
            oldest = self._next.pop(next(iter(self._next)))
            oldest.fail(DatabaseUnavailable("too many unknown keys wait"))
        asked = self._next[token] = _Asked()
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return asked

    async def _run(self) -> None:
        try:
            while self._next:
                asked = dict(islice(self._next.items(), QUERY_MAX))
                for token in asked:
                    del self._next[token]
                self._begun = dict(asked)
                await self._query(asked)
        finally:
            self._running = None

    async def _query(self, asked: Mapping[str, _Asked]) -> None:
        began = self._clock.monotonic()
        try:
            keys = await self._keys.verify([*asked])
        except Exception as error:  # whoever waits raises it; the next query goes on
            for each in asked.values():
                each.fail(error)
        else:
            for each, key in zip(asked.values(), keys, strict=True):
                each.verified.set_result((began, key))
        finally:
            self._begun = {}
