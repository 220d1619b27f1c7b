"""The values of ``/metrics`` that a visitor may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from outbox.access import Caller

GROUP: str = "producer_group"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value, with its labels."""

    labels: Mapping[str, str]
    value: float


class MetricValues:
    """All values by name; a caller bound to groups gets those of its groups, and no others."""

    def __init__(self, page: bytes, caller: Caller) -> None:
        self._by_name: dict[str, list[MetricValue]] = {}
        for family in text_string_to_metric_families(page.decode()):
            for sample in family.samples:
                if caller.groups is not None and sample.labels.get(GROUP) not in caller.groups:
                    continue
                found = MetricValue(sample.labels, sample.value)
                self._by_name.setdefault(sample.name, []).append(found)

    def of(self, name: str) -> list[MetricValue]:
        """Return the values of a metric, the largest first; the name is without ``outbox_``."""
        found = self._by_name.get(f"outbox_{name}", [])
        return sorted(found, key=lambda each: -each.value)
