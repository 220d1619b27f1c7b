"""The start page: messages that are not finished, found by qualifiers in the address."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from api.console.in_process_api import Query, Refused
from api.console.search import EXAMPLE, QUALIFIERS, MessageSearch, SearchInvalid, parse_search
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.messages.message import State

MESSAGES: Final = "/v1/half-messages"
SHOWN: Final = 50
EXPORTED: Final = 10_000
EXPORT_PAGE: Final = 500
DEFAULT_STATES: Final = (State.PREPARED, State.COMMITTED)
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
NOT_IN_A_CELL: Final = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is a formula for spreadsheets."""


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
        failed = _why(refused)
    return visit.page(
        "unresolved.html",
        status=200 if failed is None else 422,
        command=search.command(_states(search)[0]),
        q=text,
        failed=failed,
        lists=lists,
        now=now,
        one_state=search.state,
        qualifiers=QUALIFIERS,
        example=EXAMPLE,
        groups=await _group_names(visit),
        not_bulk=visit.why_not(Scope.OPS_FORCE),
    )


async def export(visit: Visit) -> Response:
    """Return exactly what matches the search as CSV, at most EXPORTED messages."""
    try:
        search = parse_search(visit.query.get("q", "").strip(), SystemClock().now())
    except SearchInvalid as invalid:
        raise Refused(422, {"title": "The search is not valid", "detail": str(invalid)}) from None
    found: list[dict[str, Any]] = []
    for state in _states(search):
        found.extend(await _all(visit, search.query(state), EXPORTED - len(found)))
    headers = {"content-disposition": "attachment; filename=messages.csv"}
    headers["cache-control"] = "no-store"
    return Response("".join(_lines(found)), headers=headers, media_type="text/csv; charset=utf-8")


def _states(search: MessageSearch) -> Sequence[State]:
    return DEFAULT_STATES if search.state is None else (search.state,)


async def _list(visit: Visit, search: MessageSearch, state: State) -> dict[str, Any]:
    cursor = visit.query.get("cursor") if search.state is not None else None
    query: Query = {**search.query(state), "limit": SHOWN}
    page = await visit.api.get(MESSAGES, {**query, "cursor": cursor} if cursor else query)
    bound = search.text if search.state else f"state:{state.value.lower()} {search.text}".strip()
    following = page["next_cursor"] and visit.address("/", q=bound, cursor=page["next_cursor"])
    return {"state": state, "page": page, "next": following, "alone": visit.address("/", q=bound)}


async def _all(visit: Visit, query: dict[str, str], at_most: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while len(found) < at_most:
        asked: Query = {**query, **cursor, "limit": min(EXPORT_PAGE, at_most - len(found))}
        page = await visit.api.get(MESSAGES, asked)
        found.extend(page["data"])
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    return found


def _lines(found: list[dict[str, Any]]) -> Iterator[str]:
    for row in [dict(zip(COLUMNS, COLUMNS, strict=True)), *found]:
        line = io.StringIO()
        csv.writer(line).writerow([_cell(row[name]) for name in COLUMNS])
        yield line.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return "'" + text if text.startswith(NOT_IN_A_CELL) else text


async def _by_id(visit: Visit, word: str) -> Response:
    """Go to the one message that an id names; an id may be a message, a transaction or a key."""
    try:
        found = await visit.api.get(f"{MESSAGES}/{quote(word, safe='')}")
        return visit.see(f"/messages/{found['message_id']}")
    except Refused as refused:
        if refused.status != 404:
            raise
    for name in ("transaction_id", "key"):
        if name == "key" and not visit.can(Scope.MESSAGES_PAYLOAD):
            continue
        page = await visit.api.get(MESSAGES, {name: word, "limit": SHOWN})
        if len(page["data"]) == 1:
            return visit.see(f"/messages/{page['data'][0]['message_id']}")
        if page["data"] or page["searched_back_to"]:
            return visit.page("found.html", word=word, name=name, page=page)
    return visit.page("found.html", status=404, word=word, name=None, page=None)


async def _group_names(visit: Visit) -> list[str]:
    """Return names for the suggestions of the search box."""
    if not visit.can(Scope.GROUPS_READ):
        return []
    page = await visit.api.quiet().get("/v1/producer-groups", {"limit": 200})
    return [group["producer_group"] for group in page["data"]]


def _why(refused: Refused) -> str:
    errors = refused.problem.get("errors") or []
    rules = "; ".join(f"{each['pointer'].strip('/')}: {each['message']}" for each in errors)
    return rules or str(refused.problem.get("detail"))
