"""One action on selected messages, or on all that match: dry run, reason, a stored action."""

from __future__ import annotations

from typing import Any, Final

from starlette.datastructures import ImmutableMultiDict
from starlette.responses import Response

from api.console.visit import Visit
from api.http.problems import Problem, invalid
from outbox.clock import SystemClock
from outbox.messages.message import State
from outbox.operators.bulk_actions import BulkKind

BULK: Final = "/v1/bulk-actions"
MAX_ITEMS: Final = 100_000
DELAY_SECONDS: Final = 30
"""How long an operator can take an action back before it begins."""
FILTERS: Final = {
    "state": "State",
    "producer_group": "Group",
    "topic": "Topic",
    "transaction_id": "Transaction",
    "key": "Key",
    "tag": "Tag",
    "prepared_from": "Prepared from",
    "prepared_to": "Prepared to",
    "min_checks": "Checks at least",
    "last_outcome": "Last outcome",
    "last_http_status": "Last HTTP status",
    "decided_by": "Decided by",
    "trace_id": "Trace",
}
"""The filters of messages: query parameters of ``GET /v1/half-messages``, and their labels."""
ACTIONS: Final = {
    "recheck": ("Ask the producers again", {"action": "recheck"}),
    "commit": ("Decide COMMIT", {"action": "force_end", "decision": "COMMIT"}),
    "rollback": ("Decide ROLLBACK", {"action": "force_end", "decision": "ROLLBACK"}),
    "release": ("Publish again what Kafka refuses", {"action": "release_held"}),
    "drop": ("Give up what Kafka refuses", {"action": "drop_held"}),
}
DECISIONS: Final = ("recheck", "commit", "rollback")
OFFERED: Final[dict[str, tuple[str, ...]]] = {
    State.PREPARED: DECISIONS,
    State.PARKED: DECISIONS,
    State.COMMITTED: ("release", "drop"),
}
"""What an operator may do to messages of a state."""
SELECTED: Final = "selected"
"""The form acts on the messages that were selected in a list, not on all that match."""

Given = ImmutableMultiDict[str, str]
"""The fields of a form, or the parameters of an address."""


def offered_actions(state: str) -> list[tuple[str, str]]:
    """Return the names and titles of what an operator may do to messages of a state."""
    return [(name, ACTIONS[name][0]) for name in OFFERED.get(state, ())]


async def plan(visit: Visit) -> Response:
    """Count what matches, and ask for the reason; nothing is done."""
    given = visit.request.query_params
    asked = _asked(given)
    dry_run = {"operator": visit.operator, "reason": "dry run", "dry_run": True}
    result = await visit.api.post(BULK, asked | dry_run)
    return visit.page(
        "bulk_plan.html",
        given=visit.given(FILTERS),
        filters={name: value for name, value in asked["filter"].items() if name in FILTERS},
        selected=asked["filter"].get("message_ids"),
        action=given["action"],
        title=ACTIONS[given["action"]][0],
        result=result,
        delay_seconds=DELAY_SECONDS,
    )


async def begin(visit: Visit) -> Response:
    """Store the action; it acts on what matches now, between the times of the dry run."""
    why = {name: visit.filled_in.get(name) for name in ("operator", "reason")}
    asked = _asked(visit.form) | why | {"delay_seconds": DELAY_SECONDS}
    started = await visit.api.post(BULK, asked)
    return visit.see(f"/bulk-actions/{started['id']}")


async def show(visit: Visit) -> Response:
    """Show the progress of an action."""
    action = await visit.api.get(f"{BULK}/{visit.at['action_id']}")
    return visit.page("bulk_action.html", action=action)


async def cancel(visit: Visit) -> Response:
    """Do nothing more of an action."""
    number = visit.at["action_id"]
    action = await visit.api.post(f"{BULK}/{number}/cancel", visit.filled_in)
    done = "cancelled" if action["status"] == "cancelled" else "action-over"
    return visit.see(f"/bulk-actions/{number}", done=done)


def _asked(given: Given) -> dict[str, Any]:
    """Return the request. Raises Problem without a filter or a known action."""
    try:
        _, action = ACTIONS[given.get("action", "")]
    except KeyError:
        raise invalid("/action", "must be chosen") from None
    if given.get("of") == SELECTED:
        conditions: dict[str, Any] = {"message_ids": list(dict.fromkeys(given.getlist("message")))}
        if not conditions["message_ids"]:
            raise Problem(slug="invalid-request", detail="Select messages of the list first.")
    else:
        conditions = _conditions(given, action["action"])
    return {**action, "filter": conditions, "max_items": MAX_ITEMS}


def _conditions(given: Given, action: str) -> dict[str, Any]:
    """Return the filter for all that match. Raises Problem if it is empty."""
    asked: dict[str, Any] = {name: given[name] for name in FILTERS if given.get(name)}
    if not asked:
        raise Problem(
            slug="invalid-request",
            detail="Filter the list first: an action on every message is refused.",
        )
    # Without a state the start page lists, of those that this action takes, the prepared ones.
    asked.setdefault("state", State.COMMITTED if BulkKind(action).is_held else State.PREPARED)
    # What is prepared after the dry run was not seen by the operator.
    asked.setdefault("prepared_to", SystemClock().now().isoformat())
    return asked
