"""The four hot routes: one decode, one use case, one encode; no framework in between.

They bypass the framework's router; ``deploy/openapi`` adds them to the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.request import parse_http_list

from api.http.exchange import JSON, Exchange, HeaderList, HotRoute, HttpResponse
from api.http.json_body import decode
from api.http.problems import Problem, document
from api.http.rate_limits import RateLimit
from api.ingest.batch_items import each_valid, items_of, texts_of
from api.ingest.ends import Ends
from api.ingest.prepares import Prepares
from api.ingest.schemas import (
    ENCODER,
    END,
    END_ITEM,
    PREPARE,
    EndBatchAnswer,
    EndResult,
    PrepareBatchAnswer,
    PrepareResult,
)
from outbox.access import Scope

PREFIX: Final = "/v1/half-messages"
CREATED: Final = 201
WAIT_MAX_SECONDS: Final = 30
_MESSAGE: Final = f"{PREFIX}/"
_END_SUFFIX: Final = "/end"


class HotRoutes:
    """Prepare, end and their batch forms."""

    def __init__(
        self,
        prepares: Prepares,
        ends: Ends,
        rate: RateLimit,
        item_max_bytes: int,
        traceparent: Callable[[str | None], str | None],
    ) -> None:
        """Take the use cases; ``traceparent`` returns the trace context to store."""
        self._prepares = prepares
        self._ends = ends
        self._rate = rate
        self._item_max_bytes = item_max_bytes
        self._traceparent = traceparent
        write, end = Scope.MESSAGES_WRITE, Scope.MESSAGES_END
        self._end = HotRoute(f"{PREFIX}/{{message_id}}/end", end, True, False, self.end)
        fixed = (
            HotRoute(PREFIX, write, False, False, self.prepare),
            HotRoute(f"{PREFIX}/batch", write, False, True, self.prepare_batch),
            HotRoute(f"{PREFIX}/end-batch", end, True, True, self.end_batch),
        )
        self._fixed = {route.path: route for route in fixed}

    def find(self, method: str, path: str) -> HotRoute | None:
        """Return the hot route of a request, or None for every other request."""
        if method != "POST":
            return None
        found = self._fixed.get(path)
        if found is not None:
            return found
        if path.startswith(_MESSAGE) and path.endswith(_END_SUFFIX) and path.count("/") == 4:
            return self._end
        return None

    async def prepare(self, request: Exchange) -> HttpResponse:
        """POST /v1/half-messages."""
        rate_fields = self._rate.spend(request.caller)
        body = decode(request.body, PREPARE)
        [outcome] = await self._prepares.store(
            [body],
            request.caller,
            self._traceparent(request.header(b"traceparent")),
            request.header(b"idempotency-key"),
        )
        if isinstance(outcome, Problem):
            raise outcome
        half, replayed = outcome
        headers = [JSON, (b"location", f"{PREFIX}/{half.message_id}".encode()), *rate_fields]
        if replayed:
            headers.append((b"idempotency-replayed", b"true"))
        return HttpResponse(CREATED, ENCODER.encode(half), headers)

    async def prepare_batch(self, request: Exchange) -> HttpResponse:
        """POST /v1/half-messages/batch."""
        texts = texts_of(request.body)
        rate_fields = self._rate.spend(request.caller, len(texts))
        items = items_of(texts, PREPARE, self._item_max_bytes)
        traceparent = self._traceparent(request.header(b"traceparent"))
        outcomes = await self._prepares.store(items, request.caller, traceparent)
        results = [
            PrepareResult(place, outcome.status, problem=document(outcome, request.request_id))
            if isinstance(outcome, Problem)
            else PrepareResult(place, CREATED, replayed=outcome[1], result=outcome[0])
            for place, outcome in enumerate(outcomes)
        ]
        return HttpResponse(207, ENCODER.encode(PrepareBatchAnswer(results)), [JSON, *rate_fields])

    async def end(self, request: Exchange) -> HttpResponse:
        """POST /v1/half-messages/{message_id}/end."""
        body, wait = decode(request.body, END), _wait_of(request)
        message_id = request.path[len(_MESSAGE) : -len(_END_SUFFIX)]
        [outcome], waited = await self._ends.decide([(message_id, body)], request.caller, wait)
        if isinstance(outcome, Problem):
            raise outcome
        return HttpResponse(200, ENCODER.encode(outcome), _applied(wait, waited))

    async def end_batch(self, request: Exchange) -> HttpResponse:
        """POST /v1/half-messages/end-batch."""
        items = items_of(texts_of(request.body), END_ITEM, self._item_max_bytes)
        wait = _wait_of(request)
        ends = each_valid(items, lambda item: (item.message_id, item))
        outcomes, waited = await self._ends.decide(ends, request.caller, wait)
        results = [
            EndResult(place, outcome.status, problem=document(outcome, request.request_id))
            if isinstance(outcome, Problem)
            else EndResult(place, 200, outcome)
            for place, outcome in enumerate(outcomes)
        ]
        answer = ENCODER.encode(EndBatchAnswer(results))
        return HttpResponse(207, answer, _applied(wait, waited))


def _applied(wait: int | None, waited: bool) -> HeaderList:
    """Return the headers of an end; they confirm the wait unless too many callers wait."""
    if wait is None or not waited:
        return [JSON]
    return [JSON, (b"preference-applied", f"wait={wait}".encode())]


def _wait_of(request: Exchange) -> int | None:
    """Return the seconds that ``Prefer: wait=N`` asks for, at most the longest wait.

    What is not understood is ignored (RFC 7240): no decision is lost for a preference.
    """
    header = request.header(b"prefer")
    for preference in parse_http_list(header) if header else ():
        name, _, value = preference.partition(";")[0].partition("=")
        seconds = value.strip().strip('"')
        if name.strip().lower() == "wait" and seconds.isascii() and seconds.isdigit():
            return min(int(seconds[:10]), WAIT_MAX_SECONDS)
    return None
