"""Verifies API keys: one query at a time, for all tokens that came during the last one.

So invented tokens take one connection of the pool, however many there are, and a valid key among
them waits for a few queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from outbox.access import ApiKey, ApiKeys
from outbox.clock import Clock

Verified = tuple[float, ApiKey | None]
"""When the query began, and the key as it was then."""

QUERY_MAX: Final = 500
"""Most tokens of one query."""


class KeyVerifier:
    """The queries of one process for one kind of token."""

    def __init__(self, keys: ApiKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._shared: dict[str, asyncio.Future[Verified]] = {}
        """What newcomers may wait for as well."""
        self._next: list[tuple[str, asyncio.Future[Verified]]] = []
        self._running: asyncio.Task[None] | None = None

    async def verify(self, token: str) -> Verified:
        """Return the key of a token, or None, and its age; raises DatabaseUnavailable."""
        future = self._shared.get(token)
        if future is None:
            future = self._shared[token] = asyncio.get_running_loop().create_future()
            self._next.append((token, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await asyncio.shield(future)

    def forget(self) -> None:
        """Let nobody who comes from now on share a query that has begun before."""
        self._shared.clear()

    async def _run(self) -> None:
        try:
            while self._next:
                asked, self._next = self._next[:QUERY_MAX], self._next[QUERY_MAX:]
                await self._query(asked)
        finally:
            self._running = None

    async def _query(self, asked: Sequence[tuple[str, asyncio.Future[Verified]]]) -> None:
        began = self._clock.monotonic()
        try:
            keys = await self._keys.verify([token for token, _ in asked])
        except Exception as error:  # whoever waits raises it; the next query goes on
            for _, future in asked:
                future.set_exception(error)
                future.exception()  # everybody who waited may be gone
        else:
            for (_, future), key in zip(asked, keys, strict=True):
                future.set_result((began, key))
        finally:
            for token, future in asked:
                if self._shared.get(token) is future:
                    del self._shared[token]
