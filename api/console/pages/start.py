"""The start page: what needs a person, then what waits, and what the last hour did."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from starlette.responses import Response

from api.console.in_process_api import Query, Refused
from api.console.metric_values import MetricValues, metric_values
from api.console.page_renderer import read_moment
from api.console.pages.system import rank
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock

STATES: Final = ("PREPARED", "PARKED", "COMMITTED")
SHOWN: Final = 20
"""The most groups of a list."""
UNASKED: Final[Query] = {"unasked": "true", "limit": SHOWN}
BY_GROUP: Final = ("parked messages", "held messages")
"""Checks of the doctor that the page shows by group, also to a key of some groups."""
PAUSED: Final = "paused groups"
RATES_NEED: Final = f"A key of all groups with the scope {Scope.REPORTS_READ} sees the last hour."
STALE: Final = timedelta(hours=26)
"""The age of the last reconciliation that its alert allows."""


async def show(visit: Visit) -> Response:
    """Show what needs a person, counts and ages by state and group, and the last hour."""
    values, not_ready, report, rates, runs, unasked = await asyncio.gather(
        metric_values(visit),
        _not_ready(visit),
        visit.read(visit.sees_all, "/v1/doctor"),
        visit.read(visit.sees_all, "/v1/rates"),
        visit.read(visit.can(Scope.REPORTS_READ), "/v1/reconciliations", {"limit": 1}),
        visit.read(visit.can(Scope.GROUPS_READ), "/v1/producer-groups", UNASKED),
    )
    now = SystemClock().now()
    run = next(iter(runs["data"]), None) if runs else None
    elsewhere = (*BY_GROUP, PAUSED) if unasked else BY_GROUP
    groups = _groups(values, rates or {"groups": ()})
    return visit.page(
        "start.html",
        not_ready=not_ready,
        report=_findings(report, elsewhere),
        held=values.of("held_messages")[:SHOWN],
        parked=values.of("parked_messages")[:SHOWN],
        failing=values.of("check_failing_seconds")[:SHOWN],
        unread=[each for each in values.of("table_gauges_unread") if each.value],
        unasked=unasked,
        not_groups=visit.why_not(Scope.GROUPS_READ),
        run=run,
        run_is_stale=run is not None and now - read_moment(run["finished_at"]) > STALE,
        not_run=visit.why_not(Scope.REPORTS_READ),
        states=_states(values),
        groups=groups[:SHOWN],
        all_groups=len(groups),
        rates=rates,
        minutes=_minutes(rates),
        not_rates=None if rates else RATES_NEED,
    )


async def _not_ready(visit: Visit) -> Mapping[str, str]:
    """Return what keeps this process from being ready, each with its state."""
    try:
        await visit.api.get("/readyz")
    except Refused as refused:
        checks: dict[str, str] = refused.problem.get("checks", {})
        return {name: state for name, state in checks.items() if state != "ok"}
    return {}


def _findings(report: Mapping[str, Any] | None, elsewhere: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return what the doctor finds, the worst first, without what is shown elsewhere."""
    found = report["data"] if report else ()
    bad = [each for each in found if each["verdict"] != "ok" and each["check"] not in elsewhere]
    return sorted(bad, key=rank)


def _minutes(rates: Mapping[str, Any] | None) -> list[str]:
    """Return the minutes of the last hour as a clock shows them."""
    if not rates:
        return []
    begin = read_moment(rates["begins_at"])
    count = len(rates["data"][0]["counts"])
    return [f"{begin + timedelta(minutes=place):%H:%M}" for place in range(count)]


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
    """Return the groups with unfinished messages or with some in the last hour.

    The one with the busiest minute comes first. A number of a state may be a lower bound.
    """
    found: dict[str, dict[str, Any]] = defaultdict(
        lambda: {"hour": {}, "busiest": 0, "unfinished": {}, "capped": set()}
    )
    for each in rates["groups"]:
        facts = {"hour": each["counts"], "busiest": each["busiest_minute"]}
        found[each["producer_group"]].update(facts)
    for each in values.of("half_messages"):
        if each.value:
            row = found[each.labels["producer_group"]]
            row["unfinished"][each.labels["state"]] = int(each.value)
    for each in values.of("half_messages_capped"):
        if each.value:
            found[each.labels["producer_group"]]["capped"].add(each.labels["state"])
    rows = [{"group": name, **facts} for name, facts in found.items()]
    return sorted(rows, key=lambda row: (-row["busiest"], row["group"]))
