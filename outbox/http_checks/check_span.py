"""The span of one check call: a trace of its own, linked to the prepares it asks about."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from outbox.checks.check_round import Answer, Question
from outbox.checks.producer_group import ProducerGroup

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans


class CheckSpan:
    """The span of a call, recorded for a block. Used only when tracing is on."""

    def __init__(self, spans: Spans, group: ProducerGroup, questions: Sequence[Question]) -> None:
        self._spans = spans
        self._span = spans.client(
            f"check {group.name}",
            [question.half.message.content.traceparent for question in questions],
            {**_call_attributes(group), **_message_attributes(questions)},
        )
        self.traceparent = spans.traceparent_of(self._span)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._spans.fail(self._span, kind.__name__)
        self._span.end()

    def answered(self, answers: Sequence[Answer]) -> None:
        """Note what came back; a call without any verdict has failed."""
        first = answers[0]
        if first.http_status is not None:
            self._span.set_attribute("http.response.status_code", first.http_status)
        outcomes = sorted({answer.outcome for answer in answers})
        self._span.set_attribute("outbox.check.outcomes", [each.value for each in outcomes])
        if not any(answer.valid for answer in answers):
            self._spans.fail(self._span, outcomes[0].value)


def _call_attributes(group: ProducerGroup) -> dict[str, Any]:
    """Return the facts of the call; of the URL host and port, because a query may be secret."""
    url = urlsplit(group.check_url)
    known = {"server.address": url.hostname, "server.port": url.port}
    return {
        "http.request.method": "POST",
        "outbox.producer_group": group.name,
        **{name: value for name, value in known.items() if value is not None},
    }


def _message_attributes(questions: Sequence[Question]) -> dict[str, Any]:
    topics = {question.half.message.content.topic for question in questions}
    facts: dict[str, Any] = {"messaging.operation.name": "check"}
    if len(topics) == 1:
        facts["messaging.destination.name"] = topics.pop()
    if len(questions) == 1:
        facts["messaging.message.id"] = str(questions[0].half.message_id)
        facts["outbox.check.attempt"] = questions[0].attempt
    else:
        facts["messaging.batch.message_count"] = len(questions)
    return facts
