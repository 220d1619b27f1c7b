"""One action on selected messages, or on all that match: dry run, reason, a stored action."""

from __future__ import annotations

from typing import Any, Final

from starlette.datastructures import ImmutableMultiDict
from starlette.responses import Response

from api.console.in_process_api import refusal
from api.console.search import SearchInvalid, parse_search
from api.console.visit import Visit
from outbox.clock import SystemClock
from outbox.messages.message import State

BULK: Final = "/v1/bulk-actions"
MAX_ITEMS: Final = 100_000
DELAY_SECONDS: Final = 30
"""How long an operator can take an action back before it begins."""
ENDED: Final = ("finished", "cancelled")
BOUNDS: Final = ("prepared_from", "prepared_to")
"""The conditions that a form keeps from the dry run."""
NUMBERS: Final = ("min_checks", "last_http_status")
HELD: Final = ("release_held", "drop_held")
ACTIONS: Final = {
    "recheck": ("Ask the producers again", {"action": "recheck"}),
    "commit": ("Decide COMMIT", {"action": "force_end", "decision": "COMMIT"}),
    "rollback": ("Decide ROLLBACK", {"action": "force_end", "decision": "ROLLBACK"}),
    "release": ("Publish again what Kafka refuses", {"action": "release_held"}),
    "drop": ("Give up what Kafka refuses", {"action": "drop_held"}),
}
DECISIONS: Final = ("recheck", "commit", "rollback")
OFFERED: Final = {
    State.PREPARED: DECISIONS,
    State.PARKED: DECISIONS,
    State.COMMITTED: ("release", "drop"),
}
"""What an operator may do to messages of a state."""
SELECTED: Final = "selected"
"""The form acts on the messages that were selected in a list, not on all that match."""

Given = ImmutableMultiDict[str, str]
"""The fields of a form, or the parameters of an address."""


def offered_actions(state: State) -> list[tuple[str, str]]:
    """Return the names and titles of what an operator may do to messages of a state."""
    return [(name, ACTIONS[name][0]) for name in OFFERED.get(state, ())]


async def plan(visit: Visit) -> Response:
    """Count what matches, and ask for the reason; nothing is done."""
    given = visit.request.query_params
    asked = _asked(given, {"operator": visit.operator or "console", "reason": "dry run"})
    bounds = {name: asked["filter"][name] for name in BOUNDS if name in asked["filter"]}
    result = await visit.api.post(BULK, {**asked, "dry_run": True})
    return visit.page(
        "bulk_plan.html",
        q=given.get("q", ""),
        state=asked["filter"].get("state"),
        selected=asked["filter"].get("message_ids"),
        action=given["action"],
        title=ACTIONS[given["action"]][0],
        bounds=bounds,
        result=result,
        delay_seconds=DELAY_SECONDS,
    )


async def begin(visit: Visit) -> Response:
    """Store the action; it acts on what matches now, between the times of the dry run."""
    asked = _asked(visit.form, visit.reason)
    started = await visit.api.post(BULK, {**asked, "delay_seconds": DELAY_SECONDS})
    return visit.see(f"/bulk-actions/{started['id']}")


async def show(visit: Visit) -> Response:
    """Show the progress of an action; when it ends, the page is loaded again for its buttons."""
    action = await visit.api.get(f"{BULK}/{visit.request.path_params['action_id']}")
    if visit.is_refresh and action["status"] in ENDED:
        return visit.reload()
    return visit.page("bulk_action.html", action=action)


async def cancel(visit: Visit) -> Response:
    """Do nothing more of an action."""
    number = visit.request.path_params["action_id"]
    status = (await visit.api.post(f"{BULK}/{number}/cancel", visit.reason))["status"]
    done = "cancelled" if status == "cancelled" else "action-over"
    return visit.see(f"/bulk-actions/{number}", done=done)


def _asked(given: Given, reason: dict[str, str]) -> dict[str, Any]:
    """Return the request. Raises Refused for a search or an action that is not understood."""
    try:
        _, action = ACTIONS[given.get("action", "")]
    except KeyError:
        raise refusal("The action is not valid", "Choose one.") from None
    is_selection = given.get("of") == SELECTED
    conditions = _selection(given) if is_selection else _conditions(given, action["action"])
    return {
        **action,
        "filter": conditions,
        "max_items": MAX_ITEMS,
        **reason,
    }


def _selection(given: Given) -> dict[str, Any]:
    """Return the filter for the selected messages. Raises Refused if there are none."""
    selected = given.getlist("message")
    if not selected:
        detail = "Select messages of the list first."
        raise refusal("No message is selected", detail)
    return {"message_ids": list(dict.fromkeys(selected))}


def _conditions(given: Given, action: str) -> dict[str, Any]:
    """Return the filter for all that match the search. Raises Refused."""
    now = SystemClock().now()
    try:
        search = parse_search(given.get("q", ""), now)
    except SearchInvalid as error:
        raise refusal("The search is not valid", str(error)) from None
    if not search.filters and search.state is None:
        detail = "Search for something first: an action on every message is refused."
        raise refusal("The filter is too broad", detail)
    # Without a state the start page lists, of those that this action takes, the prepared ones.
    state = search.state or (State.COMMITTED if action in HELD else State.PREPARED)
    conditions: dict[str, Any] = {**search.filters, "state": state.value}
    conditions |= {name: int(conditions[name]) for name in NUMBERS if name in conditions}
    # An age counts from the dry run, and what is prepared after it was not seen by the operator.
    conditions.setdefault("prepared_to", now.isoformat())
    return conditions | {name: given[name] for name in BOUNDS if name in given}
