"""The four hot routes: one decode, one use case, one encode; no framework in between.

They bypass the framework's router; ``openapi`` adds them to the OpenAPI document.
"""

from __future__ import annotations

from typing import Final

from api.http.exchange import JSON, HeaderList, HotRoute, HttpRequest, HttpResponse
from api.http.problems import Problem, document, invalid
from api.http.rate_limits import RateLimit
from api.ingest.bodies.fair_decoder import BatchForm, FairDecoder, spend_nothing
from api.ingest.end_rules import end_of
from api.ingest.ingest import Decided, Ingest
from api.ingest.prepare_rules import traceparent_of
from api.ingest.schemas import (
    ENCODER,
    END,
    END_BATCH,
    END_ITEM,
    PREPARE,
    PREPARE_BATCH,
    EndBatchAnswer,
    EndResult,
    PrepareBatchAnswer,
    PrepareResult,
)
from outbox.access import Scope

PREFIX: Final = "/v1/half-messages"
WAIT_MAX_SECONDS: Final = 30
WAIT_MAX_DIGITS: Final = 9
_MESSAGE: Final = f"{PREFIX}/"
_END_SUFFIX: Final = "/end"
_PREPARES: Final = BatchForm(PREPARE_BATCH, PREPARE)
_ENDS: Final = BatchForm(END_BATCH, END_ITEM)


class HotRoutes:
    """Prepare, end and their batch forms."""

    def __init__(self, ingest: Ingest, prepares: RateLimit, decoder: FairDecoder) -> None:
        self._ingest = ingest
        self._prepares = prepares
        self._decoder = decoder
        write, end = Scope.MESSAGES_WRITE, Scope.MESSAGES_END
        self._end = HotRoute(f"{PREFIX}/{{message_id}}/end", end, True, False, self.end)
        self._fixed = {
            PREFIX: HotRoute(PREFIX, write, False, False, self.prepare),
            f"{PREFIX}/batch": HotRoute(f"{PREFIX}/batch", write, False, True, self.prepare_batch),
            f"{PREFIX}/end-batch": HotRoute(f"{PREFIX}/end-batch", end, True, True, self.end_batch),
        }

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

    async def prepare(self, request: HttpRequest) -> HttpResponse:
        """POST /v1/half-messages."""
        rate_fields = self._prepares.spend(request.caller)
        body = await self._decoder.single(request, PREPARE)
        [outcome] = await self._ingest.prepare(
            [body],
            request.caller,
            traceparent=_traceparent(request),
            idempotency_key=request.header(b"idempotency-key"),
        )
        if isinstance(outcome, Problem):
            raise outcome
        half = outcome.half
        headers = [JSON, (b"location", f"{PREFIX}/{half.message_id}".encode()), *rate_fields]
        if outcome.replayed:
            headers.append((b"idempotency-replayed", b"true"))
        return HttpResponse(201, ENCODER.encode(half), headers)

    async def end(self, request: HttpRequest) -> HttpResponse:
        """POST /v1/half-messages/{message_id}/end."""
        body = await self._decoder.single(request, END)
        wait = _wait_of(request)
        message_id = request.path[len(_MESSAGE) : -len(_END_SUFFIX)]
        groups = await self._ingest.group_ids(request.caller)
        decided = await self._ingest.end(
            [end_of(message_id, body, groups)],
            request.caller,
            wait,
            traceparent=_traceparent(request),
        )
        [outcome] = decided.answers
        if isinstance(outcome, Problem):
            raise outcome
        return HttpResponse(200, ENCODER.encode(outcome), _applied(wait, decided))

    async def prepare_batch(self, request: HttpRequest) -> HttpResponse:
        """POST /v1/half-messages/batch."""
        rate_fields: HeaderList = []

        def spend(items: int) -> None:
            rate_fields.extend(self._prepares.spend(request.caller, items))

        items = await self._decoder.batch(request, _PREPARES, spend)
        outcomes = await self._ingest.prepare(
            items, request.caller, traceparent=_traceparent(request)
        )
        results = [
            PrepareResult(
                index=index,
                status=outcome.status,
                problem=document(outcome, request.request_id),
            )
            if isinstance(outcome, Problem)
            else PrepareResult(
                index=index, status=201, replayed=outcome.replayed, result=outcome.half
            )
            for index, outcome in enumerate(outcomes)
        ]
        return HttpResponse(207, ENCODER.encode(PrepareBatchAnswer(results)), [JSON, *rate_fields])

    async def end_batch(self, request: HttpRequest) -> HttpResponse:
        """POST /v1/half-messages/end-batch."""
        items = await self._decoder.batch(request, _ENDS, spend_nothing)
        wait = _wait_of(request)
        groups = await self._ingest.group_ids(request.caller)
        ends = [
            item if isinstance(item, Problem) else end_of(item.message_id, item, groups)
            for item in items
        ]
        decided = await self._ingest.end(
            ends, request.caller, wait, traceparent=_traceparent(request)
        )
        results = [
            EndResult(
                index=index,
                status=outcome.status,
                problem=document(outcome, request.request_id),
            )
            if isinstance(outcome, Problem)
            else EndResult(index=index, status=200, result=outcome)
            for index, outcome in enumerate(decided.answers)
        ]
        answer = ENCODER.encode(EndBatchAnswer(results))
        return HttpResponse(207, answer, _applied(wait, decided))


def _traceparent(request: HttpRequest) -> str | None:
    return traceparent_of(request.header(b"traceparent"))


def _applied(wait: int | None, decided: Decided) -> HeaderList:
    """Return the headers of an end; they confirm the wait unless too many callers wait."""
    if wait is None or not decided.waited:
        return [JSON]
    return [JSON, (b"preference-applied", f"wait={wait}".encode())]


def _wait_of(request: HttpRequest) -> int | None:
    """Return the seconds that ``Prefer: wait=N`` asks for."""
    for preference in (request.header(b"prefer") or "").split(","):
        name, _, seconds = (part.strip() for part in preference.partition("="))
        if name.lower() == "wait":
            digits = seconds.isascii() and seconds.isdigit() and len(seconds) <= WAIT_MAX_DIGITS
            if not digits or int(seconds) > WAIT_MAX_SECONDS:
                raise invalid("", f"Prefer: wait takes 0 to {WAIT_MAX_SECONDS} seconds")
            return int(seconds)
    return None
