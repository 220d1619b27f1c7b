"""The search box: qualifiers such as ``group:billing age:>5m checks:>3`` as filters of the API."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from outbox.checks.answer import Outcome
from outbox.messages.message import DecidedBy, State
from outbox.operators.message_view import NEVER_CHECKED

QUALIFIERS: Final = {
    "state": "prepared, parked, committed, published or rolled_back",
    "group": "a producer group",
    "topic": "a topic",
    "transaction": "a transaction id",
    "key": "a key; needs messages:payload",
    "tag": "a tag",
    "by": "who decided: " + ", ".join(DecidedBy),
    "age": "older or younger, for example age:>5m or age:<2h",
    "checks": "more checks than a number, for example checks:>3",
    "outcome": "the last check: " + ", ".join([*Outcome, NEVER_CHECKED]),
    "status": "the HTTP status of the last check, for example status:500",
    "trace": "the trace of its prepare, 32 hexadecimal digits",
}
EXAMPLE: Final = "group:billing age:>5m checks:>3"
LONGEST: Final = 1000
_FILTERS: Final = {
    "group": "producer_group",
    "topic": "topic",
    "transaction": "transaction_id",
    "key": "key",
    "tag": "tag",
    "by": "decided_by",
    "outcome": "last_outcome",
    "status": "last_http_status",
    "trace": "trace_id",
}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGE: Final = re.compile(r"([<>])(\d{1,4})([smhd])")
_CHECKS: Final = re.compile(r"(>=?)(\d{1,4})")


class SearchInvalid(ValueError):
    """The text is no search; the message says what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSearch:
    """What a search text asks for."""

    text: str
    state: State | None = None
    filters: dict[str, str] = field(default_factory=dict)
    """Query parameters of ``GET /v1/half-messages``, without the state."""
    word: str | None = None
    """A text without a qualifier: an id of any kind."""

    def query(self, state: State) -> dict[str, str]:
        """Return the query parameters for messages of a state."""
        return {"state": state.value, **self.filters}


def parse_search(text: str, now: datetime) -> MessageSearch:
    """Return what the text asks for; ages count back from ``now``. Raises SearchInvalid."""
    if len(text) > LONGEST:
        raise SearchInvalid(f"a search has at most {LONGEST} characters")
    state: State | None = None
    filters: dict[str, str] = {}
    words: list[str] = []
    for part in _parts(text):
        name, colon, value = part.partition(":")
        if not colon or name not in QUALIFIERS:
            words.append(part)
        elif name == "state":
            state = _state(value)
        else:
            filters.update(_filter(name, value, now))
    if words and (len(words) > 1 or filters or state):
        raise SearchInvalid(
            f"{words[0][:40]!r} is no qualifier; use {', '.join(QUALIFIERS)}."
            " If it is one id: an id with blanks needs double quotes."
        )
    return MessageSearch(text=text, state=state, filters=filters, word=words[0] if words else None)


def _parts(text: str) -> list[str]:
    """Split at blanks, but not inside of double quotes."""
    found: list[str] = re.findall(r'(?:[^\s"]|"[^"]*")+', text)
    if '"' in re.sub(r'"[^"]*"', "", text):
        raise SearchInvalid("a double quote is not closed")
    return [part.replace('"', "") for part in found]


def _filter(name: str, value: str, now: datetime) -> dict[str, str]:
    if not value:
        raise SearchInvalid(f"{name}: needs a value: {QUALIFIERS[name]}")
    special: dict[str, Callable[[str, datetime], dict[str, str]]] = {"age": _age, "checks": _checks}
    if name in special:
        return special[name](value, now)
    return {_FILTERS[name]: value}


def _state(value: str) -> State:
    try:
        return State(value.upper())
    except ValueError:
        raise SearchInvalid(f"state: takes {QUALIFIERS['state']}") from None


def _age(value: str, now: datetime) -> dict[str, str]:
    found = _AGE.fullmatch(value)
    if found is None:
        raise SearchInvalid("age: takes > or < and a number with s, m, h or d: age:>5m")
    seconds = int(found[2]) * _SECONDS[found[3]]
    moment = (now - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"prepared_to" if found[1] == ">" else "prepared_from": moment}


def _checks(value: str, _: datetime) -> dict[str, str]:
    found = _CHECKS.fullmatch(value)
    if found is None:
        raise SearchInvalid("checks: takes > or >= and a number: checks:>3")
    return {"min_checks": str(int(found[2]) + (found[1] == ">"))}
