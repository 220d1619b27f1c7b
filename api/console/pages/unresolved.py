"""Messages in lists: not finished, or parked, or as fields in the address filter them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from api.console.csv_file import EXPORTED, csv_file
from api.console.in_process_api import Query, Refused
from api.console.pages.bulk_action import FILTERS, offered_actions
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.messages.message import State
from outbox.operators.message_view import NEVER_CHECKED

MESSAGES: Final = "/v1/half-messages"
SHOWN: Final = 50
CLUSTERED: Final = 500
"""How many of the newest parked messages are clustered."""
DEFAULT_STATES: Final = (State.PREPARED, State.COMMITTED)
RECORD: Final = re.compile(r"([A-Za-z0-9._-]{1,249})/(\d{1,10})@(\d{1,19})")
"""`topic/partition@offset`, as the page of a message shows it."""
TRACE: Final = re.compile(r"[0-9a-f]{32}")
TRANSACTION_MAX: Final = 128
"""The longest transaction id."""
COLUMNS: Final = (
    "message_id",
    "state",
    "producer_group",
    "transaction_id",
    "topic",
    "prepared_at",
    "check_count",
    "decided_at",
    "publish_error",
)


async def show(visit: Visit) -> Response:
    """List what matches the filters of the address."""
    return await _show(visit, visit.given(FILTERS))


async def show_parked(visit: Visit) -> Response:
    """List the parked messages below their clusters: one cause, many messages."""
    query: Query = {"state": State.PARKED, "limit": CLUSTERED}
    newest = await visit.api.get(MESSAGES, query)
    parked = {"clusters": _clusters(newest["data"]), **newest}
    return await _show(visit, {"state": State.PARKED.value}, parked)


async def _show(visit: Visit, given: dict[str, str], parked: Any = None) -> Response:
    """List what matches, newest first for each state."""
    state = given.get("state")
    return visit.page(
        "unresolved.html",
        title=(state or "Unresolved").capitalize().replace("_", " "),
        parked=parked,
        filters=FILTERS,
        given=given,
        lists=[await _list(visit, query) for query in _queries(given)],
        now=SystemClock().now(),
        one_state=state,
        bulk_actions=offered_actions(state or State.PREPARED),
        exported=EXPORTED,
        not_bulk=visit.why_not(Scope.OPS_FORCE),
    )


async def export(visit: Visit) -> Response:
    """Return exactly what matches the filters as CSV, at most EXPORTED messages."""
    return await csv_file(visit, "messages", MESSAGES, _queries(visit.given(FILTERS)), COLUMNS)


def _queries(given: dict[str, str]) -> list[dict[str, str]]:
    """Return the filters of each list: one for a state."""
    return [given] if "state" in given else [{**given, "state": each} for each in DEFAULT_STATES]


async def _list(visit: Visit, query: dict[str, str]) -> dict[str, Any]:
    return {
        "state": query["state"],
        "page": await visit.list(MESSAGES, "/messages", limit=SHOWN, **query),
        "only": visit.address("/messages", **query),
        "actions": offered_actions(query["state"]),
    }


def _clusters(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of each group whose last check went the same way, the most first."""
    by_cause: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for message in found:
        last = message["last_check"] or {"outcome": NEVER_CHECKED, "http_status": None}
        cause = message["producer_group"], last["outcome"], last["http_status"]
        by_cause[cause].append(message)
    clusters = [
        {
            "filters": {
                "state": State.PARKED.value,
                "producer_group": group,
                "last_outcome": outcome,
                **({"last_http_status": str(status)} if status else {}),
            },
            "count": len(alike),
            "oldest": alike[-1]["prepared_at"],  # the newest come first
            "reasons": {each["parked_reason"] for each in alike},
        }
        for (group, outcome, status), alike in by_cause.items()
    ]
    return sorted(clusters, key=lambda each: (-each["count"], each["filters"]["producer_group"]))


async def find(visit: Visit) -> Response:
    """Go to the one message that an id names.

    It may be a place in Kafka, a message, a trace, a transaction or a key.
    """
    word = visit.query.get("id", "").strip()
    message_id = await _exact(visit, word)
    if message_id is not None:
        return visit.see(f"/messages/{message_id}")
    names = ["transaction_id"] if len(word) <= TRANSACTION_MAX else []
    if TRACE.fullmatch(word):
        names.append("trace_id")
    elif visit.can(Scope.MESSAGES_PAYLOAD):
        names.append("key")
    for name in names:
        page = await visit.api.get(MESSAGES, {name: word, "limit": SHOWN})
        if len(page["data"]) == 1:
            return visit.see(f"/messages/{page['data'][0]['message_id']}")
        if page["data"] or page["searched_back_to"]:
            return visit.page("found.html", word=word, name=name, page=page)
    return visit.page("found.html", status=404, word=word, name=None, page=None)


async def _exact(visit: Visit, word: str) -> str | None:
    """Return the message that has this id, or whose record has this place."""
    place = RECORD.fullmatch(word)
    paths = [f"{MESSAGES}/{quote(word, safe='')}"]
    paths += ["/v1/records/{}/{}/{}".format(*place.groups())] if place else []
    for path in paths:
        try:
            return str((await visit.api.get(path))["message_id"])
        except Refused as refused:
            if refused.status != 404:
                raise
    return None
