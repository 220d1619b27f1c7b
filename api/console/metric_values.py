"""The values of the metrics page that a visitor may see."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from api.console.visit import Visit
from outbox.access import Caller


class MetricValues:
    """The values of ``/metrics``; a caller bound to groups gets those of its groups, and no others.

    A value is parsed when it is asked for: the page has many more than are shown.
    """

    def __init__(self, page: bytes, caller: Caller) -> None:
        self._groups = caller.groups
        self._lines = page.decode().split("\n")

    def of(self, name: str) -> list[Sample]:
        """Return the values of a metric, the largest first; the name is without ``outbox_``."""
        begins = (f"outbox_{name} ", f"outbox_{name}{{")
        lines = [line for line in self._lines if line.startswith(begins)]
        found = [
            sample
            for family in text_string_to_metric_families("\n".join([*lines, ""]))
            for sample in family.samples
            if self._groups is None or sample.labels.get("producer_group") in self._groups
        ]
        return sorted(found, key=lambda each: -each.value)


async def metric_values(visit: Visit) -> MetricValues:
    """Return the values of the metrics page that the visitor may see."""
    answer = await visit.api.fetch("/metrics")
    return MetricValues(answer.content, visit.caller)
