"""Prometheus beside the stack: which alerts have fired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2


@dataclass(frozen=True)
class Watch:
    """What Prometheus has seen of the stack since a moment of its own clock."""

    url: str
    since: float

    def seconds(self) -> float:
        """Return how long it watches."""
        return self.now(self.url) - self.since

    def fired(self) -> set[str]:
        """Return the alerts that have fired meanwhile."""
        window = f"{round(self.seconds())}s"
        asked = f'max_over_time(ALERTS{{alertstate="firing"}}[{window}])'
        found = self.ask(self.url, asked)["result"]
        return {each["metric"]["alertname"] for each in found}

    @staticmethod
    def ask(url: str, query: str) -> Any:
        answer = httpx2.get(url, params={"query": query}, trust_env=False, timeout=60)
        return answer.json()["data"]

    @classmethod
    def now(cls, url: str) -> float:
        return float(cls.ask(url, "time()")["result"][1])
