"""Prepare and end: check each request, join a flush, answer after its commit. Knows no HTTP.

A list goes in and a list of the same length comes out. Each item is one message and has its own
result. A single request is a list of one item, so it takes the same path as a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from api.http.problems import Problem, invalid
from api.ingest.answers import Accepted, awaits_publication, end_answer, prepare_answer
from api.ingest.batcher import MicroBatcher
from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from api.ingest.prepare_rules import content_of, transaction_id_of, unpublishable
from api.ingest.publication_wait import PublicationWait
from api.ingest.schemas import EndedHalf, PrepareRequest
from api.ingest.topic_cache import TopicCache
from outbox.access import Caller
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import (
    Content,
    End,
    Ended,
    EndOutcome,
    GroupDeleted,
    Message,
    MessageStatus,
    PrepareOutcome,
)
from outbox.messages.message_id import HalfId
from outbox.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from api.ingest.message_spans import MessageSpans

NO_TARGET = {
    "unknown-topic": "Kafka shows this service no such topic: create it, or its Kafka principal"
    " needs DESCRIBE on it",
    "partition-out-of-range": "the topic has no such partition",
}
ROW_OVERHEAD_BYTES = 300
"""What a message adds to a flush besides its key and value, for the flush's byte limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestPolicy:
    """The settings that apply to a prepare; sizes are in bytes."""

    message_max_bytes: int = 1_000_000
    reserved_topics: frozenset[str] = frozenset()
    reject_half_messages: bool = False


class Names(Struct, frozen=True, kw_only=True, gc=False):
    """What the names of one call mean; ``refusals`` has the slug that refuses a target, or None."""

    groups: Mapping[str, ProducerGroup]
    topic_ids: Mapping[str, int]
    refusals: Mapping[tuple[str, int | None], str | None]


class Decided(Struct, frozen=True, kw_only=True, gc=False):
    """The answers to ends, in order; ``waited`` is False if too many wait for Kafka."""

    answers: Sequence[EndedHalf | Problem]
    waited: bool = True


class Ingest:
    """The two use cases of a producer."""

    def __init__(
        self,
        *,
        prepares: MicroBatcher[Message, PrepareOutcome],
        ends: MicroBatcher[End, EndOutcome],
        name_cache: NameCache,
        topic_cache: TopicCache,
        publications: PublicationWait,
        policy: IngestPolicy,
        metrics: Metrics,
        spans: MessageSpans | None = None,
    ) -> None:
        """Take the parts; ``spans`` None records no span."""
        self._spans = spans
        self._prepares = prepares
        self._ends = ends
        self._names = name_cache
        self._topics = topic_cache
        self._publications = publications
        self._policy = policy
        self._metrics = IngestMetrics(metrics, name_cache)

    async def group_ids(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups a caller is bound to; None means every group."""
        return await self._names.group_ids(caller)

    # -- prepare ---------------------------------------------------------------------------------

    async def prepare(
        self,
        requests: Sequence[PrepareRequest | Problem],
        caller: Caller,
        *,
        traceparent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sequence[Accepted | Problem]:
        """Store half messages; answer each in order once its flush has committed.

        A Problem among the requests is returned in its place, so a batch keeps its order. Raises
        Problem, Overloaded or DatabaseUnavailable when none of them was stored.
        """
        if self._policy.reject_half_messages:
            raise Problem(slug="half-messages-refused")
        contents = [self._content(request, traceparent) for request in requests]
        if self._spans is None:
            return await self._store(requests, contents, caller, idempotency_key)
        spans, traced = self._spans.prepares(requests, contents, traceparent)
        with spans:
            answers = await self._store(requests, traced, caller, idempotency_key)
            spans.answered(answers)
            return answers

    async def _store(
        self,
        requests: Sequence[PrepareRequest | Problem],
        contents: Sequence[Content | Problem],
        caller: Caller,
        idempotency_key: str | None,
    ) -> Sequence[Accepted | Problem]:
        """Store what names and rules allow, in one flush."""
        names = await self._look_up(requests, contents, caller)
        checked = [
            content
            if isinstance(content, Problem) or isinstance(request, Problem)
            else self._message(request, content, caller, idempotency_key, names)
            for request, content in zip(requests, contents, strict=True)
        ]
        messages = [message for message in checked if isinstance(message, Message)]
        if not messages:
            return [item for item in checked if isinstance(item, Problem)]
        outcomes = await self._prepares.submit(messages, _weight(messages), caller.tenant)
        self._metrics.prepared(outcomes)
        for message, outcome in zip(messages, outcomes, strict=True):
            if isinstance(outcome, GroupDeleted):
                self._names.forget(message.producer_group)
        answers = iter([prepare_answer(outcome, names.groups) for outcome in outcomes])
        return [item if isinstance(item, Problem) else next(answers) for item in checked]

    def _content(
        self, request: PrepareRequest | Problem, traceparent: str | None
    ) -> Content | Problem:
        if isinstance(request, Problem):
            return request
        try:
            return content_of(
                request,
                traceparent=traceparent,
                message_max_bytes=self._policy.message_max_bytes,
                reserved_topics=self._policy.reserved_topics,
            )
        except Problem as problem:
            return problem

    async def _look_up(
        self,
        requests: Sequence[PrepareRequest | Problem],
        contents: Sequence[Content | Problem],
        caller: Caller,
    ) -> Names:
        """Return the groups, the ids of allowed topics, and the targets that Kafka lacks."""
        pairs = [
            (request.producer_group, content)
            for request, content in zip(requests, contents, strict=True)
            if not isinstance(request, Problem) and not isinstance(content, Problem)
        ]
        groups = await self._names.groups({group for group, _ in pairs if caller.sees(group)})
        allowed = [
            content
            for name, content in pairs
            if name in groups and may_write(groups[name], content.topic)
        ]
        targets = {(content.topic, content.partition) for content in allowed}
        await self._topics.load(targets)
        refusals = {target: self._topics.refusal(*target) for target in targets}
        accepted = {topic for (topic, _), refusal in refusals.items() if refusal is None}
        topic_ids = await self._names.topic_ids(accepted)
        return Names(groups=groups, topic_ids=topic_ids, refusals=refusals)

    def _message(
        self,
        request: PrepareRequest,
        content: Content,
        caller: Caller,
        idempotency_key: str | None,
        names: Names,
    ) -> Message | Problem:
        """Return the message to store, or the rule that the request breaks."""
        name, topic = request.producer_group, content.topic
        group = names.groups.get(name)
        if group is None:
            return invalid("/producer_group", "is not registered", "unknown-group")
        if not may_write(group, topic):
            return invalid("/topic", "the group may not write this topic", "topic-not-allowed")
        refusal = names.refusals[(topic, content.partition)]
        if refusal is not None:
            pointer = "/topic" if refusal == "unknown-topic" else "/partition"
            return invalid(pointer, NO_TARGET[refusal], refusal)
        unfit = unpublishable(content, self._topics.seen(topic))
        if unfit is not None:
            return unfit
        try:
            transaction_id = transaction_id_of(request, idempotency_key)
        except Problem as problem:
            return problem
        immunity, tags = request.check_immunity_seconds, request.tags
        return Message(
            content=content,
            producer_group=name,
            producer_group_id=group.id,
            topic_id=names.topic_ids[topic],
            transaction_id=transaction_id,
            check_immunity_seconds=None if immunity is UNSET else immunity,
            tags=() if tags is UNSET or tags is None else tuple(tags),
            key_id=caller.key_id,
        )

    # -- end -------------------------------------------------------------------------------------

    async def end(
        self,
        requests: Sequence[End | Problem],
        caller: Caller,
        wait_seconds: int | None,
        *,
        traceparent: str | None = None,
    ) -> Decided:
        """Decide half messages; answer each in order once its flush has committed.

        ``wait_seconds`` waits once, for all of them, until Kafka has acknowledged the committed.
        Raises DatabaseUnavailable; the same ends may be repeated.
        """
        if self._spans is None:
            return await self._decide(requests, caller, wait_seconds)
        with self._spans.ends(requests, traceparent) as spans:
            decided = await self._decide(requests, caller, wait_seconds)
            spans.answered(decided.answers)
            spans.name_by_topic(requests, await self._spans.origins(requests, spans))
            return decided

    async def _decide(
        self, requests: Sequence[End | Problem], caller: Caller, wait_seconds: int | None
    ) -> Decided:
        ends = [request for request in requests if isinstance(request, End)]
        if not ends:
            return Decided(answers=[each for each in requests if isinstance(each, Problem)])
        if wait_seconds:
            ends = [replace(end, awaited=True) for end in ends]
        outcomes = await self._ends.submit(ends)
        await self._metrics.ended(outcomes)
        published = await self._wait(outcomes, caller, wait_seconds) if wait_seconds else {}
        answers = iter([end_answer(outcome, published or {}) for outcome in outcomes])
        return Decided(
            answers=[item if isinstance(item, Problem) else next(answers) for item in requests],
            waited=published is not None,
        )

    async def _wait(
        self, outcomes: Sequence[EndOutcome], caller: Caller, seconds: int
    ) -> Mapping[HalfId, MessageStatus] | None:
        """Return the statuses of the messages that Kafka acknowledged in time, or None."""
        open_ids = {
            outcome.status.half_id
            for outcome in outcomes
            if isinstance(outcome, Ended)
            and not outcome.conflict
            and awaits_publication(outcome.status)
        }
        return await self._publications.wait(caller.tenant, sorted(open_ids), seconds)


def may_write(group: ProducerGroup, topic: str) -> bool:
    """Return True if a group's allow-list names this topic; an empty list allows every topic."""
    return not group.topics or any(
        topic.startswith(allowed[:-1]) if allowed.endswith("*") else topic == allowed
        for allowed in group.topics
    )


def _weight(messages: Sequence[Message]) -> int:
    return sum(
        len(message.content.value or b"") + len(message.content.key or b"") + ROW_OVERHEAD_BYTES
        for message in messages
    )
