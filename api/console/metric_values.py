"""The values of ``/metrics`` that a visitor may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from outbox.access import Caller

GROUP: Final = "producer_group"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value, with its labels."""

    labels: Mapping[str, str]
    value: float


class MetricValues:
    """All values by name; a caller bound to groups gets those of its groups, and no others.

    A value is parsed when it is asked for: the page has many more than are shown.
    """

    def __init__(self, page: bytes, caller: Caller) -> None:
        self._caller = caller
        self._lines: dict[str, list[str]] = defaultdict(list)
        for line in page.decode().split("\n"):
            self._lines[line.partition(" ")[0].partition("{")[0]].append(line)

    def of(self, name: str) -> list[MetricValue]:
        """Return the values of a metric, the largest first; the name is without ``outbox_``."""
        lines = "\n".join([*self._lines.get(f"outbox_{name}", ()), ""])
        found = [
            MetricValue(sample.labels, sample.value)
            for family in text_string_to_metric_families(lines)
            for sample in family.samples
            if self._is_seen(sample.labels)
        ]
        return sorted(found, key=lambda each: -each.value)

    def _is_seen(self, labels: Mapping[str, str]) -> bool:
        return self._caller.groups is None or labels.get(GROUP) in self._caller.groups
