"""Prepare: check each request, join a flush, answer after its commit. Knows no HTTP.

A list goes in and a list of the same length comes out. Each item is one message and has its own
result. A single request is a list of one item, so it takes the same path as a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET, Struct

from api.http.problems import Problem, invalid
from api.ingest.answers import prepare_answer
from api.ingest.batch_items import each_valid
from api.ingest.batcher import MicroBatcher
from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from api.ingest.prepare_rules import content_of, refuse_unpublishable, transaction_id_of
from api.ingest.schemas import PrepareRequest, PrepareResult
from api.ingest.topic_cache import TopicCache
from outbox.access import Caller
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import Content, GroupDeleted, Message, PrepareOutcome
from outbox.messages.seen_topics import SeenTopic

NO_TARGET: Final = {
    "unknown-topic": "Kafka shows this service no such topic: create it, or its Kafka principal"
    " needs DESCRIBE on it",
    "partition-out-of-range": "the topic has no such partition",
}
ROW_OVERHEAD_BYTES: Final = 300
"""What a message adds to a flush besides its key and value, for the flush's byte limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePolicy:
    """The settings that apply to a prepare; sizes are in bytes."""

    message_max_bytes: int = 1_000_000
    reserved_topics: frozenset[str] = frozenset()
    reject_half_messages: bool = False


class Call(Struct, frozen=True, kw_only=True, gc=False):
    """What the prepares of one call share."""

    caller: Caller
    traceparent: str | None = None
    idempotency_key: str | None = None


class Names(Struct, frozen=True, kw_only=True, gc=False):
    """What the names of one call mean."""

    groups: Mapping[str, ProducerGroup]
    topic_ids: Mapping[str, int]
    refusals: Mapping[tuple[str, int | None], str | None]
    """By topic and partition: the slug that refuses it, or None."""
    seen: Mapping[str, SeenTopic]


class Prepares:
    """The use case of a prepare."""

    def __init__(
        self,
        flushes: MicroBatcher[Message, PrepareOutcome],
        name_cache: NameCache,
        topic_cache: TopicCache,
        policy: PreparePolicy,
        metrics: IngestMetrics,
    ) -> None:
        self._flushes = flushes
        self._names = name_cache
        self._topics = topic_cache
        self._policy = policy
        self._metrics = metrics

    async def store(
        self, requests: Sequence[PrepareRequest | Problem], call: Call
    ) -> Sequence[PrepareResult | Problem]:
        """Store half messages; answer each in order once its flush has committed.

        A Problem among the requests is returned in its place, so a batch keeps its order. Raises
        Problem, Overloaded or DatabaseUnavailable when none of them was stored.
        """
        if self._policy.reject_half_messages:
            raise Problem(slug="half-messages-refused")
        drafts = each_valid(requests, lambda request: (request, self._content(request, call)))
        names = await self._look_up(
            [draft for draft in drafts if not isinstance(draft, Problem)], call.caller
        )
        checked = each_valid(drafts, lambda draft: self._message(*draft, call, names))
        messages = [message for message in checked if isinstance(message, Message)]
        if not messages:
            return [item for item in checked if isinstance(item, Problem)]
        outcomes = await self._flushes.submit(messages, _weight(messages), call.caller.tenant)
        self._metrics.prepared(outcomes)
        for message, outcome in zip(messages, outcomes, strict=True):
            if isinstance(outcome, GroupDeleted):
                self._names.forget(message.producer_group)
        answers = iter([prepare_answer(outcome, names.groups) for outcome in outcomes])
        return [item if isinstance(item, Problem) else next(answers) for item in checked]

    def _content(self, request: PrepareRequest, call: Call) -> Content:
        return content_of(
            request,
            traceparent=call.traceparent,
            message_max_bytes=self._policy.message_max_bytes,
            reserved_topics=self._policy.reserved_topics,
        )

    async def _look_up(
        self, drafts: Sequence[tuple[PrepareRequest, Content]], caller: Caller
    ) -> Names:
        """Return the groups, and the ids of the topics that may be written and that Kafka has."""
        asked = {request.producer_group for request, _ in drafts}
        groups = await self._names.groups({name for name in asked if caller.sees(name)})
        targets = {
            (content.topic, content.partition)
            for request, content in drafts
            if request.producer_group in groups
            and may_write(groups[request.producer_group], content.topic)
        }
        await self._topics.load(targets)
        refusals = {target: self._topics.refusal(*target) for target in targets}
        found = {topic for (topic, _), refusal in refusals.items() if refusal is None}
        return Names(
            groups=groups,
            topic_ids=await self._names.topic_ids(found),
            refusals=refusals,
            seen={topic: self._topics.seen(topic) for topic in found},
        )

    def _message(
        self, request: PrepareRequest, content: Content, call: Call, names: Names
    ) -> Message:
        """Return the message to store; raises Problem for the rule that the request breaks."""
        name, topic = request.producer_group, content.topic
        group = names.groups.get(name)
        if group is None:
            raise invalid("/producer_group", "is not registered", "unknown-group")
        if not may_write(group, topic):
            raise invalid("/topic", "the group may not write this topic", "topic-not-allowed")
        refusal = names.refusals[topic, content.partition]
        if refusal is not None:
            pointer = "/topic" if refusal == "unknown-topic" else "/partition"
            raise invalid(pointer, NO_TARGET[refusal], refusal)
        refuse_unpublishable(content, names.seen[topic])
        immunity, tags = request.check_immunity_seconds, request.tags
        return Message(
            content=content,
            producer_group=name,
            producer_group_id=group.id,
            topic_id=names.topic_ids[topic],
            transaction_id=transaction_id_of(request, call.idempotency_key),
            check_immunity_seconds=None if immunity is UNSET else immunity,
            tags=() if tags is UNSET or tags is None else tuple(tags),
            key_id=call.caller.key_id,
        )


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
