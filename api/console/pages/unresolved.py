"""The start page: messages that are not finished, found by qualifiers in the address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from api.console.csv_file import EXPORTED, csv_file
from api.console.in_process_api import Query, Refused, refusal
from api.console.pages.bulk_action import offered_actions
from api.console.search import MessageSearch, SearchInvalid, parse_search
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.messages.message import State

MESSAGES: Final = "/v1/half-messages"
SHOWN: Final = 50
WRONG_SEARCH: Final = frozenset({400, 403, 422})
"""The statuses of an answer that refuses the search, not the visit."""
DEFAULT_STATES: Final = (State.PREPARED, State.COMMITTED)
RECORD: Final = re.compile(r"([A-Za-z0-9._-]{1,249})/(\d{1,10})@(\d{1,19})")
"""`topic/partition@offset`, as the page of a message shows it."""
TRACE: Final = re.compile(r"[0-9a-f]{32}")
TRANSACTION_MAX: Final = 128
"""The longest transaction id."""
QUALIFIER_OF: Final = {"transaction_id": "transaction", "trace_id": "trace", "key": "key"}
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
    """List what matches the search, newest first for each state."""
    text = visit.query.get("q", "").strip()
    now = SystemClock().now()
    lists: list[dict[str, Any]] = []
    search, failed = MessageSearch(text=""), None
    try:
        search = parse_search(text, now)
        if search.word is not None:
            return await _by_id(visit, search.word)
        lists = [await _list(visit, search, state) for state in _states(search)]
    except SearchInvalid as invalid:
        failed = str(invalid)
    except Refused as refused:
        if refused.status not in WRONG_SEARCH:
            raise
        failed = _why(refused)
    return visit.page(
        "unresolved.html",
        status=200 if failed is None else 422,
        q=text,
        failed=failed,
        lists=lists,
        now=now,
        one_state=search.state,
        bulk_actions=offered_actions(search.state or State.PREPARED),
        exported=EXPORTED,
        not_bulk=visit.why_not(Scope.OPS_FORCE),
    )


async def export(visit: Visit) -> Response:
    """Return exactly what matches the search as CSV, at most EXPORTED messages."""
    try:
        search = parse_search(visit.query.get("q", "").strip(), SystemClock().now())
    except SearchInvalid as invalid:
        raise refusal("The search is not valid", str(invalid)) from None
    if search.word is not None:
        detail = f"{search.word[:40]!r} is no qualifier; search for it, and export what you find"
        raise refusal("The search is not valid", detail)
    queries = [search.query(state) for state in _states(search)]
    return await csv_file(visit, "messages", MESSAGES, queries, COLUMNS)


def _states(search: MessageSearch) -> Sequence[State]:
    return DEFAULT_STATES if search.state is None else (search.state,)


async def _list(visit: Visit, search: MessageSearch, state: State) -> dict[str, Any]:
    cursor = visit.query.get("cursor") if search.state is not None else None
    query: Query = {**search.query(state), "limit": SHOWN}
    page = await visit.api.get(MESSAGES, {**query, "cursor": cursor} if cursor else query)
    bound = search.text if search.state else f"state:{state.value.lower()} {search.text}".strip()
    following = page["next_cursor"] and visit.address("/", q=bound, cursor=page["next_cursor"])
    return {
        "state": state,
        "page": page,
        "next": following,
        "alone": visit.address("/", q=bound),
        "actions": offered_actions(state),
    }


async def _by_id(visit: Visit, word: str) -> Response:
    """Go to the one message that a word names.

    It may be a place in Kafka, a message, a trace, a transaction or a key.
    """
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
            further = f'{QUALIFIER_OF[name]}:"{word}"'
            return visit.page(
                "found.html",
                q=word,
                word=word,
                name=name,
                page=page,
                further=further,
            )
    return visit.page(
        "found.html",
        status=404,
        q=word,
        word=word,
        quoted=word if re.fullmatch(r"[^\s\"]+", word) else f'"{word}"',
        name=None,
        page=None,
    )


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


def _why(refused: Refused) -> str:
    errors = refused.problem.get("errors") or []
    rules = "; ".join(f"{each['pointer'].strip('/')}: {each['message']}" for each in errors)
    return rules or str(refused.problem.get("detail"))
