"""Prepare and end: judge each request, join a flush, answer after its commit. Knows no HTTP.

A list goes in and a list of the same length comes out: each item is a message, decided alone. One
request is a list of one, so the path that is fast is the path that is tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from api.http.problems import Problem, invalid
from api.ingest.answers import ended, not_prepared, prepared_half, unseen
from api.ingest.batcher import MicroBatcher
from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from api.ingest.prepare_rules import CONTROLS, content_of, transaction_id_of
from api.ingest.publication_wait import PublicationWait
from api.ingest.schemas import EndedHalf, EndItem, PreparedHalf, PrepareRequest
from api.ingest.topic_cache import TopicCache
from outbox.access import Caller
from outbox.checks.producer_group import ProducerGroup
from outbox.errors import InvalidMessageId
from outbox.messages.message import (
    Content,
    End,
    Ended,
    EndOutcome,
    Message,
    MessageStatus,
    Prepared,
    PrepareOutcome,
)
from outbox.messages.message_id import HalfId, parse_message_id
from outbox.telemetry.metrics import Metrics

ROW_OVERHEAD_BYTES = 300
"""What a message weighs in a flush besides its value, for the flush's byte bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestPolicy:
    """The settings that prepare obeys; sizes are in bytes."""

    message_max_bytes: int = 1_000_000
    reserved_topics: frozenset[str] = frozenset()
    reject_half_messages: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What came beside the body of a prepare."""

    traceparent: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Replayable:
    """A prepare's answer, and whether an earlier prepare had stored the message."""

    half: PreparedHalf
    replayed: bool


Refusals = Mapping[tuple[str, int | None], str | None]
"""By (topic, partition): the slug that refuses it, or None."""


class Ingest:
    """The two use cases of a producer."""

    def __init__(
        self,
        *,
        prepares: MicroBatcher[Message, PrepareOutcome],
        ends: MicroBatcher[End, EndOutcome],
        directory: NameCache,
        topics: TopicCache,
        publications: PublicationWait,
        policy: IngestPolicy,
        metrics: Metrics,
    ) -> None:
        self._prepares = prepares
        self._ends = ends
        self._directory = directory
        self._topics = topics
        self._publications = publications
        self._policy = policy
        self._tally = IngestMetrics(metrics, directory)

    # -- prepare ---------------------------------------------------------------------------------

    async def prepare(
        self, requests: Sequence[PrepareRequest | Problem], caller: Caller, origin: Origin
    ) -> Sequence[Replayable | Problem]:
        """Store half messages; answer each in order once its flush has committed.

        A Problem among the requests passes through, so that a batch keeps its places. Raises
        Problem, Overloaded or DatabaseUnavailable when none of them was stored.
        """
        if self._policy.reject_half_messages:
            raise Problem(slug="half-messages-refused")
        contents = [self._content(request, origin) for request in requests]
        refusals = await self._look_up(requests, contents, caller)
        judged = [
            content
            if isinstance(content, Problem) or isinstance(request, Problem)
            else self._message(request, content, caller, origin, refusals)
            for request, content in zip(requests, contents, strict=True)
        ]
        messages = [message for message in judged if isinstance(message, Message)]
        if not messages:
            return [item for item in judged if isinstance(item, Problem)]
        outcomes = await self._prepares.submit(messages, _weight(messages))
        answers = iter([self._answer(outcome) for outcome in outcomes])
        self._tally.prepared(outcomes)
        return [item if isinstance(item, Problem) else next(answers) for item in judged]

    def _content(self, request: PrepareRequest | Problem, origin: Origin) -> Content | Problem:
        if isinstance(request, Problem):
            return request
        try:
            return content_of(
                request,
                traceparent=origin.traceparent,
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
    ) -> Refusals:
        """Learn what the judging needs: groups, ids for allowed topics, and what Kafka lacks."""
        pairs = [
            (request.producer_group, content)
            for request, content in zip(requests, contents, strict=True)
            if not isinstance(request, Problem) and not isinstance(content, Problem)
        ]
        await self._directory.know_groups({group for group, _ in pairs if caller.sees(group)})
        allowed = [content for name, content in pairs if self._allowed(name, content.topic, caller)]
        targets = {(content.topic, content.partition) for content in allowed}
        await self._topics.know(targets)
        refusals = {target: self._topics.refusal(*target) for target in targets}
        fit = {topic for (topic, _), refusal in refusals.items() if refusal is None}
        await self._directory.know_topics(fit)
        return refusals

    def _allowed(self, group_name: str, topic: str, caller: Caller) -> bool:
        group = self._directory.group(group_name) if caller.sees(group_name) else None
        return group is not None and may_write(group, topic)

    def _message(
        self,
        request: PrepareRequest,
        content: Content,
        caller: Caller,
        origin: Origin,
        refusals: Refusals,
    ) -> Message | Problem:
        """Return the message to store, or the rule that refuses it."""
        name, topic = request.producer_group, content.topic
        group = self._directory.group(name) if caller.sees(name) else None
        if group is None:
            return invalid("/producer_group", "is not registered", "unknown-group")
        if not may_write(group, topic):
            return invalid("/topic", "the group may not write this topic", "topic-not-allowed")
        refusal = refusals[(topic, content.partition)]
        if refusal is not None:
            pointer = "/topic" if refusal == "unknown-topic" else "/partition"
            return invalid(pointer, "Kafka has no such target", refusal)
        try:
            transaction_id = transaction_id_of(request, origin.idempotency_key)
        except Problem as problem:
            return problem
        immunity, tags = request.check_immunity_seconds, request.tags
        return Message(
            content=content,
            producer_group=name,
            producer_group_id=group.id,
            topic_id=self._directory.topic_id(topic),
            transaction_id=transaction_id,
            check_immunity_seconds=None if immunity is UNSET else immunity,
            tags=() if tags is UNSET or tags is None else tuple(tags),
            key_id=caller.key_id,
        )

    def _answer(self, outcome: PrepareOutcome) -> Replayable | Problem:
        if not isinstance(outcome, Prepared):
            return not_prepared(outcome)
        group = self._directory.group(outcome.half.message.producer_group)
        default = group.transaction_timeout_seconds if group else 0
        return Replayable(prepared_half(outcome, default), outcome.replayed)

    # -- end -------------------------------------------------------------------------------------

    async def end(
        self, requests: Sequence[EndItem | Problem], caller: Caller, wait_seconds: int | None
    ) -> Sequence[EndedHalf | Problem]:
        """Decide half messages; answer each in order once its flush has committed.

        ``wait_seconds`` waits once, for all of them, until Kafka has acknowledged the committed.
        Raises DatabaseUnavailable; the same ends may be repeated.
        """
        groups = await self._directory.ids_of(caller)
        judged = [_end_of(request, groups) for request in requests]
        ends = [end for end in judged if isinstance(end, End)]
        if not ends:
            return [item for item in judged if isinstance(item, Problem)]
        outcomes = await self._ends.submit(ends)
        await self._tally.ended(outcomes)
        standings = await self._wait(outcomes, wait_seconds) if wait_seconds else {}
        answers = iter([ended(outcome, standings) for outcome in outcomes])
        return [item if isinstance(item, Problem) else next(answers) for item in judged]

    async def _wait(
        self, outcomes: Sequence[EndOutcome], seconds: int
    ) -> dict[HalfId, MessageStatus]:
        """Return the standings of those that Kafka acknowledged in time."""
        open_ids = {
            outcome.standing.half_id
            for outcome in outcomes
            if isinstance(outcome, Ended) and not outcome.conflict and unseen(outcome.standing)
        }
        return dict(await self._publications.wait(sorted(open_ids), seconds))


def may_write(group: ProducerGroup, topic: str) -> bool:
    """Tell whether a group's allow-list names this topic; an empty list allows every topic."""
    return not group.topics or any(
        topic.startswith(allowed[:-1]) if allowed.endswith("*") else topic == allowed
        for allowed in group.topics
    )


def _weight(messages: Sequence[Message]) -> int:
    return sum(
        len(message.content.value or b"") + len(message.content.key or b"") + ROW_OVERHEAD_BYTES
        for message in messages
    )


def _end_of(request: EndItem | Problem, groups: frozenset[int] | None) -> End | Problem:
    if isinstance(request, Problem):
        return request
    try:
        half_id, nonce = parse_message_id(request.message_id)
    except InvalidMessageId:
        return Problem(slug="message-not-found")
    if request.reason and "\x00" in request.reason:
        return invalid("/reason", "holds a NUL character")
    if request.transaction_id and CONTROLS.search(request.transaction_id):
        return invalid("/transaction_id", "holds a control character")
    return End(
        half_id=half_id,
        nonce=nonce,
        decision=request.decision,
        groups=groups,
        transaction_id=None if request.transaction_id is UNSET else request.transaction_id,
        reason=None if request.reason is UNSET else request.reason,
    )
