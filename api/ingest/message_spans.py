"""The spans of prepares and ends, one per message. Used only when tracing is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from api.http.problems import SLUG_OF, Problem
from api.ingest.answers import Accepted
from api.ingest.schemas import EndedHalf, PrepareRequest
from outbox.errors import OutboxError
from outbox.messages.message import Content, End, Origin
from outbox.messages.message_id import HalfId, message_id_text
from outbox.messages.ports import MessageOrigins

if TYPE_CHECKING:
    from outbox.telemetry.spans import Span, Spans


class OpenSpans:
    """The spans of one call: one for each item, None where there is none."""

    def __init__(self, spans: Spans, opened: Sequence[Span | None]) -> None:
        self._spans = spans
        self._opened = opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every span; an error of the call is an error of each."""
        for span in self._opened:
            if span is not None:
                if error is not None:
                    self._spans.fail(span, _error_type(error))
                span.end()

    @property
    def recorded(self) -> bool:
        """Return True if a span of the call is recorded."""
        return any(span is not None and span.is_recording() for span in self._opened)

    def answered(self, answers: Sequence[Accepted | EndedHalf | Problem]) -> None:
        """Note the answer to each item."""
        for span, answer in zip(self._opened, answers, strict=True):
            if span is None:
                continue
            if isinstance(answer, Problem):
                self._spans.fail(span, answer.slug)
            elif isinstance(answer, Accepted):
                span.set_attribute("messaging.message.id", answer.half.message_id)
            elif answer.decision is not None:
                span.set_attribute("outbox.decision", answer.decision.value)

    def name_by_topic(self, ends: Sequence[End | Problem], found: Mapping[HalfId, Origin]) -> None:
        """Name the spans of ends by their topic, and link them to the prepares."""
        for span, end in zip(self._opened, ends, strict=True):
            if span is not None and isinstance(end, End) and end.half_id in found:
                origin = found[end.half_id]
                span.update_name(f"settle {origin.topic}")
                span.set_attribute("messaging.destination.name", origin.topic)
                self._spans.link(span, origin.traceparent)


class MessageSpans:
    """Opens the spans of prepares and ends."""

    def __init__(self, spans: Spans, origins: MessageOrigins) -> None:
        self._spans = spans
        self._origins = origins

    def prepares(
        self,
        requests: Sequence[PrepareRequest | Problem],
        contents: Sequence[Content | Problem],
        traceparent: str | None,
    ) -> tuple[OpenSpans, Sequence[Content | Problem]]:
        """Open a span for each valid content; return the contents with the context to store."""
        opened: list[Span | None] = []
        traced: list[Content | Problem] = []
        for request, content in zip(requests, contents, strict=True):
            if isinstance(request, Problem) or isinstance(content, Problem):
                opened.append(None)
                traced.append(content)
                continue
            facts = _facts("prepare", "create", **{"outbox.producer_group": request.producer_group})
            facts["messaging.destination.name"] = content.topic
            span = self._spans.server(f"prepare {content.topic}", traceparent, facts)
            opened.append(span)
            traced.append(self._continued(content, span))
        return OpenSpans(self._spans, opened), traced

    def ends(self, requests: Sequence[End | Problem], traceparent: str | None) -> OpenSpans:
        """Open a span for each end; its topic is not known before it is answered."""
        return OpenSpans(
            self._spans,
            [
                None if isinstance(request, Problem) else self._settle(request, traceparent)
                for request in requests
            ],
        )

    async def origins(
        self, ends: Sequence[End | Problem], spans: OpenSpans
    ) -> Mapping[HalfId, Origin]:
        """Return where the ended messages come from; nothing if nobody records them."""
        half_ids = [end.half_id for end in ends if isinstance(end, End)]
        if not spans.recorded:
            return {}
        try:
            return await self._origins.origins(half_ids)
        except OutboxError:
            return {}

    def _continued(self, content: Content, span: Span) -> Content:
        """Return the content with the context of its span, if that is recorded at all."""
        if not span.is_recording():
            return content
        return replace(content, traceparent=self._spans.traceparent_of(span))

    def _settle(self, end: End, traceparent: str | None) -> Span:
        message_id = message_id_text(end.half_id, end.nonce)
        facts = _facts("settle", "settle", **{"messaging.message.id": message_id})
        return self._spans.server("settle", traceparent, facts)


def _facts(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"messaging.operation.name": name, "messaging.operation.type": kind, **more}


def _error_type(error: BaseException) -> str:
    if isinstance(error, Problem):
        return error.slug
    if isinstance(error, OutboxError):
        return SLUG_OF.get(type(error), "internal-error")
    return type(error).__name__
