"""The overview: what waits, for how long, the last hour, and whether the checker's tasks run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from starlette.responses import Response

from api.console.in_process_api import Query
from api.console.visit import Visit
from outbox.access import Caller, Scope
from outbox.checks.answer import ANSWERED
from outbox.clock import SystemClock

STATES: Final = ("PREPARED", "PARKED", "COMMITTED")
GROUPS_SHOWN: Final = 20
TRIPPED: Final[Query] = {"breaker": "not-closed", "limit": 20}
"""The query of the groups whose breaker is not closed."""
RATES_NEED: Final = f"A key of all groups with the scope {Scope.REPORTS_READ} sees the last hour."


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


async def show(visit: Visit) -> Response:
    """Show counts and ages by state and group, and the heartbeats."""
    values, rates, runs, tripped = await asyncio.gather(
        metric_values(visit),
        visit.read(visit.sees_all, "/v1/rates"),
        visit.read(visit.can(Scope.REPORTS_READ), "/v1/reconciliations", {"limit": 1}),
        visit.read(visit.can(Scope.GROUPS_READ), "/v1/producer-groups", TRIPPED),
    )
    now = SystemClock().now().timestamp()
    beats = values.of("checker_heartbeat_timestamp_seconds")
    groups = _groups(values, rates or {"groups": ()})
    return visit.page(
        "overview.html",
        states=_states(values),
        groups=groups[:GROUPS_SHOWN],
        all_groups=len(groups),
        tripped=tripped,
        not_tripped=visit.why_not(Scope.GROUPS_READ),
        rates=rates,
        answered=ANSWERED,
        failing=values.of("check_failing_seconds"),
        beats=[(beat.labels["task"], now - beat.value) for beat in beats],
        run=next(iter(runs["data"]), None) if runs else None,
        not_run=visit.why_not(Scope.REPORTS_READ),
        not_rates=None if rates else RATES_NEED,
    )


async def metric_values(visit: Visit) -> MetricValues:
    """Return the values of the metrics page that the visitor may see."""
    answer = await visit.api.fetch("/metrics")
    return MetricValues(answer.content, visit.caller)


def _states(values: MetricValues) -> list[dict[str, Any]]:
    """Return messages and the oldest age of each state that waits; ``capped``: there are more."""
    return [
        {
            "state": state,
            "messages": int(sum(_of(values, "half_messages", state))),
            "capped": any(_of(values, "half_messages_capped", state)),
            "oldest": max(_of(values, "half_oldest_age_seconds", state), default=0.0),
        }
        for state in STATES
    ]


def _of(values: MetricValues, name: str, state: str) -> list[float]:
    return [each.value for each in values.of(name) if each.labels["state"] == state]


def _groups(values: MetricValues, rates: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups with unfinished messages or with some in the last hour, the busiest first.

    A group's number of a state is a text: it may be a lower bound.
    """
    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"hour": {}, "unfinished": {}})
    for each in rates["groups"]:
        found[each["producer_group"]]["hour"] = each["counts"]
    capped = {
        (each.labels["producer_group"], each.labels["state"])
        for each in values.of("half_messages_capped")
        if each.value
    }
    for each in values.of("half_messages"):
        group, state = each.labels["producer_group"], each.labels["state"]
        bound = "≥ " if (group, state) in capped else ""
        if each.value:
            found[group]["unfinished"][state] = f"{bound}{int(each.value)}"
    rows = [{"group": name, **facts} for name, facts in found.items()]
    return sorted(rows, key=lambda row: (-row["hour"].get("prepared", 0), row["group"]))
