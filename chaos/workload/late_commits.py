"""A producer of a fault: prepares messages before Kafka refuses them, and commits them then.

So the fault meets messages whatever the load does. No check decides them meanwhile: they are
immune for longer than a fault lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final

from chaos.history.writer import HistoryWriter
from chaos.workload.api_connection import ApiConnection
from chaos.workload.plan import BATCH_GROUP, Planned
from chaos.workload.service_calls import EndRequest, ServiceCalls
from chaos.workload.truth import Truth

TRY_SECONDS: Final = 300.0
"""Longer than any fault keeps both APIs, PostgreSQL or Kafka away, also on a busy machine."""
PAUSE_SECONDS: Final = 0.5


class LateCommits(AbstractContextManager["LateCommits"]):
    """The messages of one fault, and what they have in the run's folder."""

    def __init__(
        self, run: Path, api_key: str, ports: Callable[[], Sequence[int]], items: Sequence[Planned]
    ) -> None:
        """``ports`` returns the ports of the living APIs."""
        client = items[0].tx.rpartition("-")[0]
        self._api_key, self._ports, self._items = api_key, ports, items
        self._truth = Truth(run / "truth" / f"{client}.sqlite")
        self._history = HistoryWriter(run, client)
        self._waiting: list[str] = []

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._truth.close()
        self._history.close()

    def prepare(self) -> None:
        """Prepare all of them and decide COMMIT. Raises TimeoutError."""
        ids = self._called(lambda calls: calls.prepare(BATCH_GROUP, self._items, batch=True))
        self._truth.decide({item.tx: item.decision for item in self._items})
        self._waiting = list(ids.values())

    def commit(self, number: int) -> None:
        """Commit the next messages, if any are left. Raises TimeoutError."""
        some, self._waiting = self._waiting[:number], self._waiting[number:]
        if some:
            ends = [EndRequest(each, "COMMIT") for each in some]
            self._called(lambda calls: calls.end(ends, batch=True))

    def _called(self, call: Callable[[ServiceCalls], Any]) -> Any:
        """Call the APIs until one has answered with a result. Raises TimeoutError."""
        return asyncio.run(self._answered(call))

    async def _answered(self, call: Callable[[ServiceCalls], Any]) -> Any:
        connections = [ApiConnection(port, self._api_key) for port in self._ports()]
        service, deadline = ServiceCalls(connections, self._history), monotonic() + TRY_SECONDS
        try:
            while not (found := await call(service)):
                if monotonic() > deadline:
                    raise TimeoutError("no API takes the messages of a fault")
                await asyncio.sleep(PAUSE_SECONDS)
            return found
        finally:
            for each in connections:
                each.close()
            await asyncio.sleep(0)
