"""Reads the bodies of the hot routes; a large one in steps, and one large one at a time.

A small body is decoded at once. Of a large one the items are found first, so that nothing with too
many of them, or with too many parts, is decoded at all. The answer to a refused body comes later
the longer it took, because it cost the others that time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from api.http.exchange import HttpRequest
from api.http.in_flight import InFlight, TenantTurns
from api.http.json_body import (
    REFUSALS,
    Search,
    decode,
    reason,
    refuse_malformed,
    typed,
    typed_in_steps,
)
from api.http.problems import Problem, invalid
from api.http.rate_limits import RefusalPause
from api.ingest.bodies.batch_items import item_of, refuse_envelope, slices_of
from api.ingest.bodies.batch_scan import ITEM_PARTS_MAX, BatchScan, ItemPlace
from api.ingest.bodies.work_steps import WorkSteps

ItemT = TypeVar("ItemT")

LARGE_BYTES: Final = 262_144
LARGE_ITEM_BYTES: Final = 65_536
SECONDS_A_BYTE: Final = 1e-9
"""What it costs to receive a byte."""


@dataclass(frozen=True, slots=True)
class BatchForm(Generic[ItemT]):
    """How a batch is decoded: whole, or one item by itself."""

    whole: msgspec.json.Decoder[Any]
    item: msgspec.json.Decoder[ItemT]


def spend_nothing(_: int) -> None:
    """Take no token of a rate for the items of a batch."""


class FairDecoder:
    """Decodes bodies; large ones wait for their turn, in which tenants take turns."""

    def __init__(self, pause: RefusalPause, in_flight: InFlight, item_max_bytes: int) -> None:
        self._pause = pause
        self._in_flight = in_flight
        self._item_max_bytes = item_max_bytes
        self._turns = TenantTurns()

    async def single(self, request: HttpRequest, form: msgspec.json.Decoder[ItemT]) -> ItemT:
        """Return the value of a body. Raises Problem."""
        steps = WorkSteps()
        try:
            if len(request.body) < LARGE_BYTES:
                return decode(request.body, form)
            async with self._turn_of(request.caller.tenant, steps):
                await _refuse_many_parts(request.body, steps)
                return await _decoded(request.body, form, steps)
        except Problem:
            await self._delay(request, steps)
            raise

    async def batch(
        self, request: HttpRequest, form: BatchForm[ItemT], spend: Callable[[int], None]
    ) -> Sequence[ItemT | Problem]:
        """Return the items of a batch; ``spend`` takes their number before one is judged.

        Raises Problem if the whole batch is refused.
        """
        steps = WorkSteps()
        try:
            if len(request.body) < LARGE_BYTES:
                items = await self._small(request, form, spend, steps)
            else:
                async with self._turn_of(request.caller.tenant, steps):
                    in_steps = await self._in_steps(request.body, form, spend, steps)
                items = in_steps
        except Problem:
            await self._delay(request, steps)
            raise
        if any(isinstance(each, Problem) for each in items):
            await self._delay(request, steps)
        return items

    async def _small(
        self,
        request: HttpRequest,
        form: BatchForm[ItemT],
        spend: Callable[[int], None],
        steps: WorkSteps,
    ) -> Sequence[ItemT | Problem]:
        """Decode at once; if that fails, decode item by item, which takes longer."""
        slices = slices_of(request.body)
        spend(len(slices))
        try:
            return list(typed(request.body, form.whole).items)
        except REFUSALS:
            refuse_envelope(request.body, slices)
        search, items = Search(), list[ItemT | Problem]()
        async with self._turn_of(request.caller.tenant, steps):
            for text in slices:
                item = item_of(text, form.item, search)
                items.append(item)
                await steps.rest_if_due()
        return items

    @asynccontextmanager
    async def _turn_of(self, tenant: Hashable, steps: WorkSteps) -> AsyncIterator[None]:
        """Wait until no other large body is judged; a request that waits takes no room."""
        steps.stop()
        async with AsyncExitStack() as turn:
            with self._in_flight.resting():
                await turn.enter_async_context(self._turns.of(tenant))
            steps.go_on()
            yield

    async def _delay(self, request: HttpRequest, steps: WorkSteps) -> None:
        spent = steps.spent_seconds + len(request.body) * SECONDS_A_BYTE
        await self._pause.pause(request.caller.tenant, spent)

    async def _in_steps(
        self,
        body: bytes,
        form: BatchForm[ItemT],
        spend: Callable[[int], None],
        steps: WorkSteps,
    ) -> Sequence[ItemT | Problem]:
        places = (await _scanned(body, steps)).items()
        spend(len(places))
        search, items = Search(), list[ItemT | Problem]()
        for place in places:
            item = await self._item(body, place, form.item, search, steps)
            items.append(item)
            await steps.rest_if_due()
        return items

    async def _item(
        self,
        body: bytes,
        place: ItemPlace,
        decoder: msgspec.json.Decoder[ItemT],
        search: Search,
        steps: WorkSteps,
    ) -> ItemT | Problem:
        if place.end - place.start > self._item_max_bytes:
            detail = f"an item may have at most {self._item_max_bytes} bytes"
            return Problem(slug="payload-too-large", detail=detail)
        if place.parts > ITEM_PARTS_MAX:
            return _many_parts()
        text = body[place.start : place.end]
        try:
            if len(text) < LARGE_ITEM_BYTES:
                return typed(text, decoder)
            return await typed_in_steps(text, decoder, steps.rest_if_due)
        except REFUSALS as error:
            await steps.rest_if_due()
            refuse_malformed(b"[[0," + text + b"]]")  # at its depth in the batch
            await steps.rest_if_due()
            return reason(text, error, search)


async def _decoded(body: bytes, form: msgspec.json.Decoder[ItemT], steps: WorkSteps) -> ItemT:
    """Return the value of a large body. Raises Problem."""
    try:
        return await typed_in_steps(body, form, steps.rest_if_due)
    except REFUSALS as error:
        await steps.rest_if_due()
        refuse_malformed(body)
        await steps.rest_if_due()
        raise reason(body, error, Search()) from None


async def _refuse_many_parts(body: bytes, steps: WorkSteps) -> None:
    """Raise Problem for a body with more parts than a valid one has."""
    scan = await _scanned(b'{"items":[' + body + b"]}", steps)
    if sum(place.parts for place in scan.items()) > ITEM_PARTS_MAX:
        raise _many_parts()


async def _scanned(body: bytes, steps: WorkSteps) -> BatchScan:
    scan = BatchScan(body)
    while scan.step():
        await steps.rest_if_due()
    return scan


def _many_parts() -> Problem:
    return invalid("", f"more than {ITEM_PARTS_MAX} texts, brackets and commas")
