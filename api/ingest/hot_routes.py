"""The four hot routes: one decode, one use case, one encode; no framework in between.

They answer below the framework's router and still stand in the OpenAPI document (``openapi``).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from api.http.exchange import JSON, Answer, Exchange, HeaderList
from api.http.json_body import decode, items_of
from api.http.problems import Problem, document, invalid
from api.http.rate_limits import RateLimit
from api.ingest.ingest import Ingest, Origin
from api.ingest.prepare_rules import traceparent_of
from api.ingest.schemas import (
    BATCH_ITEMS_MAX,
    ENCODER,
    END,
    END_BATCH,
    END_ITEM,
    PREPARE,
    PREPARE_BATCH,
    EndBatchAnswer,
    EndItem,
    EndResult,
    PrepareBatchAnswer,
    PrepareResult,
)
from outbox.access import Scope

PREFIX: Final = "/v1/half-messages"
WAIT_MAX_SECONDS: Final = 30
_END_SUFFIX: Final = "/end"
_WAIT: Final = re.compile(r"\s*wait\s*=\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class HotRoute:
    """One hot route: its name in the metrics, its scope, and what serves it."""

    template: str
    scope: Scope
    is_end: bool
    is_batch: bool
    serve: Callable[[Exchange], Awaitable[Answer]]


class HotRoutes:
    """Prepare, end and their batch forms."""

    def __init__(self, ingest: Ingest, prepares: RateLimit) -> None:
        self._ingest = ingest
        self._prepares = prepares
        write, end = Scope.MESSAGES_WRITE, Scope.MESSAGES_END
        self._end = HotRoute(f"{PREFIX}/{{message_id}}/end", end, True, False, self.end)
        self._fixed = {
            PREFIX: HotRoute(PREFIX, write, False, False, self.prepare),
            f"{PREFIX}/batch": HotRoute(f"{PREFIX}/batch", write, False, True, self.prepare_batch),
            f"{PREFIX}/end-batch": HotRoute(f"{PREFIX}/end-batch", end, True, True, self.end_batch),
        }

    def find(self, method: str, path: str) -> HotRoute | None:
        """Return the hot route of a request, or None for all the others."""
        if method != "POST":
            return None
        found = self._fixed.get(path)
        if found is not None:
            return found
        if path.startswith(PREFIX) and path.endswith(_END_SUFFIX) and path.count("/") == 4:
            return self._end
        return None

    async def prepare(self, exchange: Exchange) -> Answer:
        """POST /v1/half-messages."""
        left = self._prepares.spend(exchange.caller)
        request = decode(exchange.body, PREPARE)
        origin = Origin(
            traceparent=_traceparent(exchange),
            idempotency_key=exchange.header(b"idempotency-key"),
        )
        [outcome] = await self._ingest.prepare([request], exchange.caller, origin)
        if isinstance(outcome, Problem):
            raise outcome
        location = f"{PREFIX}/{outcome.half.message_id}".encode()
        headers: HeaderList = [JSON, (b"location", location), *left]
        if outcome.replayed:
            headers.append((b"idempotency-replayed", b"true"))
        return Answer(201, ENCODER.encode(outcome.half), headers)

    async def end(self, exchange: Exchange) -> Answer:
        """POST /v1/half-messages/{message_id}/end."""
        body = decode(exchange.body, END)
        wait, headers = _wait_of(exchange)
        message_id = exchange.path[len(PREFIX) + 1 : -len(_END_SUFFIX)]
        item = EndItem(
            message_id=message_id,
            decision=body.decision,
            reason=body.reason,
            transaction_id=body.transaction_id,
        )
        [outcome] = await self._ingest.end([item], exchange.caller, wait)
        if isinstance(outcome, Problem):
            raise outcome
        return Answer(200, ENCODER.encode(outcome), headers)

    async def prepare_batch(self, exchange: Exchange) -> Answer:
        """POST /v1/half-messages/batch."""
        items = _items(exchange.body, PREPARE_BATCH, PREPARE)
        left = self._prepares.spend(exchange.caller, len(items))
        origin = Origin(traceparent=_traceparent(exchange))
        outcomes = await self._ingest.prepare(items, exchange.caller, origin)
        results = [
            PrepareResult(
                index=place,
                status=outcome.status,
                problem=document(outcome, exchange.request_id),
            )
            if isinstance(outcome, Problem)
            else PrepareResult(index=place, status=201, result=outcome.half)
            for place, outcome in enumerate(outcomes)
        ]
        return Answer(207, ENCODER.encode(PrepareBatchAnswer(results)), [JSON, *left])

    async def end_batch(self, exchange: Exchange) -> Answer:
        """POST /v1/half-messages/end-batch."""
        items = _items(exchange.body, END_BATCH, END_ITEM)
        wait, headers = _wait_of(exchange)
        outcomes = await self._ingest.end(items, exchange.caller, wait)
        results = [
            EndResult(
                index=place,
                status=outcome.status,
                problem=document(outcome, exchange.request_id),
            )
            if isinstance(outcome, Problem)
            else EndResult(index=place, status=200, result=outcome)
            for place, outcome in enumerate(outcomes)
        ]
        return Answer(207, ENCODER.encode(EndBatchAnswer(results)), headers)


def _items(
    body: bytes, whole: msgspec.json.Decoder[Any], single: msgspec.json.Decoder[Item]
) -> Sequence[Item | Problem]:
    """Read a batch at once, or item by item where one of them is wrong."""
    try:
        return list(decode(body, whole).items)
    except Problem:
        judged = items_of(body, single)
    return _bounded(judged)


def _bounded(items: Sequence[Item]) -> Sequence[Item]:
    if not items:
        raise invalid("/items", "must hold at least one item")
    if len(items) > BATCH_ITEMS_MAX:
        raise Problem(slug="batch-too-large")
    return items


def _traceparent(exchange: Exchange) -> str | None:
    return traceparent_of(exchange.header(b"traceparent"))


def _wait_of(exchange: Exchange) -> tuple[int | None, HeaderList]:
    """Return the seconds that ``Prefer: wait=N`` asks for, and the headers that confirm it."""
    prefer = exchange.header(b"prefer")
    if prefer is None:
        return None, [JSON]
    for preference in prefer.split(","):
        asked = _WAIT.fullmatch(preference)
        if asked is not None:
            seconds = asked[1]
            if not (seconds.isascii() and seconds.isdigit() and int(seconds) <= WAIT_MAX_SECONDS):
                raise invalid("", f"Prefer: wait takes 0 to {WAIT_MAX_SECONDS} seconds")
            return int(seconds), [JSON, (b"preference-applied", f"wait={seconds}".encode())]
    return None, [JSON]
