"""Prepare: check each request, join a flush, answer after its commit. Knows no HTTP.

A list goes in and a list of the same length comes out. Each item is one message and has its own
result. A single request is a list of one item, so it takes the same path as a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from api.http.problems import Problem, invalid
from api.ingest.answers import prepare_answer
from api.ingest.batch_items import each_valid
from api.ingest.batcher import MicroBatcher
from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from api.ingest.prepare_rules import each_under, message_of, refuse_unpublishable
from api.ingest.schemas import BATCH_ITEMS_MAX, PreparedHalf, PrepareRequest
from api.ingest.topic_cache import Target, TopicCache
from outbox.access import Caller
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import GroupDeleted, Message, PrepareOutcome
from outbox.messages.topics import SeenTopic

NO_TARGET: Final = {
    "unknown-topic": "is not in Kafka: create it, or grant DESCRIBE on it to the API's principal",
    "partition-out-of-range": "is above the last partition of the topic",
}
ROW_OVERHEAD_BYTES: Final = 300
"""What a message adds to a flush besides its key and value, for the flush's byte limit."""
Targets = Mapping[Target, SeenTopic | str]
"""By topic and partition: what the relay saw of the topic, or the slug that refuses."""


@dataclass(frozen=True, slots=True)
class Prepares:
    """The use case of a prepare."""

    flushes: MicroBatcher[Message, PrepareOutcome]
    names: NameCache
    topics: TopicCache
    metrics: IngestMetrics
    refuse_all: bool
    """Whether every half message is refused."""

    async def store(
        self,
        requests: Sequence[PrepareRequest | Problem],
        caller: Caller,
        traceparent: str | None,
        idempotency_key: str | None = None,
    ) -> Sequence[tuple[PreparedHalf, bool] | Problem]:
        """Store half messages; answer each in order once its flush has committed.

        True beside a half: an earlier prepare had stored it. A Problem among the requests is
        returned in its place, so a batch keeps its order. Raises Problem, Overloaded or
        DatabaseUnavailable when none of them was stored.
        """
        if self.refuse_all:
            raise Problem(slug="half-messages-refused")
        drafts = each_valid(
            requests,
            lambda request: message_of(request, traceparent, idempotency_key, caller.key_id),
        )
        asked = {draft.producer_group for draft in drafts if isinstance(draft, Message)}
        groups = await self.names.groups({name for name in asked if caller.sees(name)})
        permitted = each_valid(drafts, lambda draft: _permitted(draft, groups))
        targets = await self.topics.look_up(
            {
                (each.topic, each.partition)
                for draft in permitted
                if isinstance(draft, Message)
                for each in (draft, *draft.followers)
            }
        )
        ids = await self.names.topic_ids(
            {topic for (topic, _), seen in targets.items() if isinstance(seen, SeenTopic)}
        )
        checked = each_valid(permitted, lambda draft: _addressed(draft, groups, targets, ids))
        messages = [message for message in checked if isinstance(message, Message)]
        rows = [row for message in messages for row in (message, *message.followers)]
        if len(rows) > BATCH_ITEMS_MAX:
            raise Problem(slug="batch-too-large")
        outcomes = await self.flushes.submit(messages, _weight(rows), caller.tenant, len(rows))
        self.metrics.prepared(outcomes, caller.rated_key or "")
        if any(isinstance(outcome, GroupDeleted) for outcome in outcomes):
            self.names.forget_groups()
        answers = iter([prepare_answer(outcome, groups) for outcome in outcomes])
        return [item if isinstance(item, Problem) else next(answers) for item in checked]


def _permitted(draft: Message, groups: Mapping[str, ProducerGroup]) -> Message:
    """Return the message; raises Problem unless its group is known and may write its topic."""
    group = groups.get(draft.producer_group)
    if group is None:
        name = draft.producer_group
        rule = (
            f"{name!r} is not registered, or this key may not use it:"
            f" PUT /v1/producer-groups/{name}"
        )
        raise invalid("/producer_group", rule, "unknown-group")
    return _each(draft, lambda message: _allowed(message, group))


def _allowed(message: Message, group: ProducerGroup) -> Message:
    if not may_write(group, message.topic):
        raise invalid("/topic", "is not among the topics of this group", "topic-not-allowed")
    return message


def _addressed(
    draft: Message,
    groups: Mapping[str, ProducerGroup],
    targets: Targets,
    ids: Mapping[str, int],
) -> Message:
    """Return the message with the ids of its names; raises Problem if Kafka would refuse it."""
    group_id = groups[draft.producer_group].id

    def address(message: Message) -> Message:
        target = targets[message.topic, message.partition]
        if isinstance(target, str):
            pointer = "/topic" if target == "unknown-topic" else "/partition"
            raise invalid(pointer, NO_TARGET[target], target)
        refuse_unpublishable(message, target)
        return replace(message, producer_group_id=group_id, topic_id=ids[message.topic])

    return _each(draft, address)


def _each(draft: Message, make: Callable[[Message], Message]) -> Message:
    """Return what is made of the message and its followers; a Problem points at one of them."""
    if not draft.followers:
        return make(draft)
    leader, *followers = each_under("/messages", (draft, *draft.followers), make)
    return replace(leader, followers=tuple(followers))


def may_write(group: ProducerGroup, topic: str) -> bool:
    """Return True if a group's allow-list names this topic; an empty list allows every topic."""
    return not group.topics or any(
        topic.startswith(allowed[:-1]) if allowed.endswith("*") else topic == allowed
        for allowed in group.topics
    )


def _weight(messages: Sequence[Message]) -> int:
    return sum(
        len(message.value or b"") + len(message.key or b"") + ROW_OVERHEAD_BYTES
        for message in messages
    )
