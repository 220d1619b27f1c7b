"""One message: its facts, its timeline, and what an operator may do about it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

import msgspec
from starlette.responses import Response

from api.console.page_renderer import read_moment
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock

MESSAGES: Final = "/v1/half-messages"
UNDECIDED: Final = ("PREPARED", "PARKED")
TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-")
HIDDEN: Final = ("at", "type", "seq")
DROPPED: Final = "drop"
"""The event of a message that an operator gave up."""


async def show(visit: Visit) -> Response:
    """Show a message; its payload only where it is asked for."""
    route = f"{MESSAGES}/{visit.at['message_id']}"
    wants_payload = visit.query.get("payload") == "1"
    answer = await visit.api.fetch(route, {"include": "payload"} if wants_payload else {})
    message = answer.json()
    events = (await visit.api.get(f"{route}/history"))["events"]
    undecided = message["state"] in UNDECIDED
    dropped = next((each for each in events if each["type"] == DROPPED), None)
    now, not_forced = SystemClock().now(), visit.why_not(Scope.OPS_FORCE)
    return visit.page(
        "message.html",
        message=message,
        as_json=msgspec.json.format(answer.content, indent=2).decode(),
        trace_id=_trace_id(events),
        timeline=_timeline(message, events, dropped, now.isoformat()),
        now=now,
        with_payload=wants_payload,
        undecided=undecided,
        not_payload=visit.why_not(Scope.MESSAGES_PAYLOAD),
        not_forced=not_forced or _why_final(message),
        not_settled=not_forced
        or (None if dropped is None else "The message was given up, and that is final."),
    )


def _why_final(message: dict[str, Any]) -> str | None:
    """Return why nobody can decide the message here, or None."""
    if message["state"] not in UNDECIDED:
        return "The message is decided, and a decision is final."
    if (message["message_ids"] or [message["message_id"]])[0] != message["message_id"]:
        return "The first message of its decision is checked and decided for it."
    return None


def _trace_id(events: list[dict[str, Any]]) -> str | None:
    """Return the trace of the prepare: the second part of its `version-trace-span-flags`."""
    contexts = [event.get("traceparent") for event in events if event["type"] == "prepared"]
    found = TRACEPARENT.match(contexts[0] or "") if contexts else None
    return found[1] if found else None


def _timeline(
    message: dict[str, Any],
    events: list[dict[str, Any]],
    dropped: dict[str, Any] | None,
    now: str,
) -> list[dict[str, Any]]:
    """Return the events with the seconds since the one before; the last is what consumers see."""
    steps = [
        {
            "at": event["at"],
            "name": event["type"],
            "facts": {
                name: value
                for name, value in event.items()
                if name not in HIDDEN and value is not None
            },
        }
        for event in events
    ]
    steps.append(_visibility(message, dropped))
    for before, step in pairwise(steps):
        since = read_moment(step["at"] or now) - read_moment(before["at"] or now)
        step["gap"] = max(0.0, since.total_seconds())
    return steps


def _visibility(message: dict[str, Any], dropped: dict[str, Any] | None) -> dict[str, Any]:
    """Return whether consumers see the message, as the last step of its timeline."""
    place = message["publication"]
    if message["decision"] == "ROLLBACK" or dropped is not None:
        at = message["decided_at"] if dropped is None else dropped["at"]
        return {"at": at, "name": "never visible to consumers", "facts": {}}
    if place is None and message["state"] == "PUBLISHED":
        return {"at": None, "name": "published, and its place in Kafka is not stored", "facts": {}}
    if place is None:
        return {"at": None, "name": "not yet visible to consumers", "facts": {}}
    facts = {each: place[each] for each in ("topic", "partition", "offset")}
    return {"at": place["published_at"], "name": "visible to consumers", "facts": facts}
