"""Long work in short steps, so that the requests of others go on between them."""

from __future__ import annotations

import asyncio
import time
from typing import Final

STEP_SECONDS: Final = 0.001


class WorkSteps:
    """Measures the work of one request; between steps it rests for as long as it has worked."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._before = 0.0

    @property
    def spent_seconds(self) -> float:
        """How long the request has worked, without its waits."""
        return self._before + time.perf_counter() - self._began

    def stop(self) -> None:
        """End a step; what follows is a wait."""
        self._before = self.spent_seconds

    def go_on(self) -> None:
        """Begin a step after a wait."""
        self._began = time.perf_counter()

    async def rest_if_due(self) -> None:
        """Let others work, if this step was long enough."""
        worked = time.perf_counter() - self._began
        if worked >= STEP_SECONDS:
            self.stop()
            await asyncio.sleep(worked)
            self.go_on()
