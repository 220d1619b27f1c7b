"""Names are read by one caller at a time, and nobody waits for ever for the others.

What the cache keeps is tested by tests/integration/api/ingest/test_lived_installation.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from api.http import fresh_values
from api.ingest.name_cache import NameCache
from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable


class SilentNames:
    """Names of a database that gives no answer."""

    def __init__(self) -> None:
        self.reads = 0

    async def groups(self, _: Collection[str]) -> dict[str, Any]:
        self.reads += 1
        await asyncio.Event().wait()
        return {}

    group_ids = intern_topics = group_names = groups


async def test_who_waits_for_the_read_of_another_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    names: Any = SilentNames()
    cache = NameCache(names, SystemClock())
    first = asyncio.create_task(cache.groups(["billing"]))
    await asyncio.sleep(0)
    monkeypatch.setattr(fresh_values, "TURN_SECONDS", 0.05)
    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(cache.groups(["orders"]), 60)
    assert names.reads == 1
    first.cancel()
