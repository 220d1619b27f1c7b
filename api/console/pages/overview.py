"""The overview: what waits, for how long, and whether the tasks of the checker run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any, Final

from starlette.responses import Response

from api.console.in_process_api import Query
from api.console.metric_values import MetricValues
from api.console.publish_latency import PublishLatency, newest_published, publish_latency
from api.console.rate_chart import part_times, rate_charts
from api.console.visit import Visit
from outbox.access import Scope
from outbox.checks.check_round import ANSWERED
from outbox.clock import SystemClock

STATES: Final = ("PREPARED", "PARKED", "COMMITTED")
SEARCH: Final = {
    "PREPARED": "state:prepared",
    "PARKED": "state:parked",
    "COMMITTED": "state:committed",
}
GROUPS_SHOWN: Final = 20
TRIPPED_SHOWN: Final = 20
RATES_NEED: Final = f"A key of all groups with the scope {Scope.REPORTS_READ} sees the last hour."


async def show(visit: Visit) -> Response:
    """Show counts and ages by state and group, and the heartbeats."""
    values, rates, run, latency, tripped = await asyncio.gather(
        metric_values(visit), _rates(visit), _last_run(visit), _latency(visit), _tripped(visit)
    )
    now = SystemClock().now()
    beats = values.of("checker_heartbeat_timestamp_seconds")
    return visit.page(
        "overview.html",
        commands=["outbox status", "outbox group list", "outbox reconcile list"],
        states=_states(values),
        search=SEARCH,
        groups=_groups(values),
        groups_shown=GROUPS_SHOWN,
        latency=latency,
        not_latency=visit.why_not(Scope.MESSAGES_READ),
        tripped=tripped,
        not_tripped=visit.why_not(Scope.GROUPS_READ),
        outcomes=rates["check_outcomes"] if rates else [],
        answered=ANSWERED,
        failing=values.of("check_failing_seconds"),
        beats=[(beat.labels["chore"], now.timestamp() - beat.value) for beat in beats],
        run=run,
        not_run=visit.why_not(Scope.REPORTS_READ),
        charts=rate_charts(rates) if rates else [],
        chart_parts=part_times(rates) if rates else [],
        not_rates=None if rates else RATES_NEED,
        bound=visit.caller.groups is not None,
    )


async def metric_values(visit: Visit) -> MetricValues:
    """Return the values of the metrics page that the visitor may see."""
    answer = await visit.api.fetch("/metrics")
    return MetricValues(answer.body, visit.caller)


def _states(values: MetricValues) -> list[dict[str, Any]]:
    """Return messages and the oldest age of each state that waits."""
    messages: dict[str, float] = defaultdict(float)
    ages: dict[str, float] = defaultdict(float)
    for each in values.of("half_messages"):
        messages[each.labels["state"]] += each.value
    for each in values.of("half_oldest_age_seconds"):
        ages[each.labels["state"]] = max(ages[each.labels["state"]], each.value)
    return [
        {"state": state, "messages": int(messages[state]), "oldest": ages[state]}
        for state in STATES
    ]


def _groups(values: MetricValues) -> list[dict[str, Any]]:
    """Return the groups with unfinished messages, those with most first."""
    messages: dict[str, dict[str, int]] = defaultdict(dict)
    ages: dict[str, float] = defaultdict(float)
    for each in values.of("half_messages"):
        if each.value:
            messages[each.labels["producer_group"]][each.labels["state"]] = int(each.value)
    for each in values.of("half_oldest_age_seconds"):
        group = each.labels["producer_group"]
        ages[group] = max(ages[group], each.value)
    ranked = sorted(messages.items(), key=lambda pair: (-sum(pair[1].values()), pair[0]))
    return [{"group": name, "messages": count, "oldest": ages[name]} for name, count in ranked]


async def _rates(visit: Visit) -> dict[str, Any] | None:
    """Return the last hour; None if the visitor may not see it."""
    if visit.caller.groups is not None or not visit.can(Scope.REPORTS_READ):
        return None
    found: dict[str, Any] = await visit.api.get("/v1/rates")
    return found


async def _latency(visit: Visit) -> PublishLatency | None:
    if not visit.can(Scope.MESSAGES_READ):
        return None
    return publish_latency(await newest_published(visit))


async def _tripped(visit: Visit) -> dict[str, Any] | None:
    """Return the groups whose breaker is not closed; None if the visitor may not see groups."""
    if not visit.can(Scope.GROUPS_READ):
        return None
    query: Query = {"breaker": "not-closed", "limit": TRIPPED_SHOWN}
    found: dict[str, Any] = await visit.api.get("/v1/producer-groups", query)
    return found


async def _last_run(visit: Visit) -> dict[str, Any] | None:
    if not visit.can(Scope.REPORTS_READ):
        return None
    page = await visit.api.get("/v1/reconciliations", {"limit": 1})
    return page["data"][0] if page["data"] else None
