"""Finds topics that take no records, or none from us, before a record of theirs is sent.

Kafka refuses the whole transaction for a right that is missing on one topic, and names none. A
partition that is in a transaction must take its marker too: until then Kafka lets the shard begin
no other transaction with its transactional id. A topic is refused after the time that a record has
for its delivery. Until then its shard tries again, as when Kafka is away. The time begins with the
transaction that failed, if the topic was in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from time import monotonic
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec

from outbox.errors import KafkaForbidden, KafkaUnavailable
from outbox.kafka.client_config import DELIVERY_SECONDS
from outbox.kafka.topics import NO_LEADER, Topic, read_topics
from outbox.relay.protocol.state import Refusal, Refused

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

LOOK_SECONDS: Final = 0.2
"""A topic that took records is not looked at again for so long."""
LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]
RECENT_SECONDS: Final = 30.0
"""A transaction that began earlier is not the one that has just failed."""
ANSWER_SECONDS: Final = 3.0
"""The time limit of a leader's answer."""
TAKES_NO_RECORDS: Final = "TAKES_NO_RECORDS"
"""The error of its records."""
FORBIDDEN: Final = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED).name()


class ReadyTopics:
    """What one shard knows of the topics that it publishes to."""

    def __init__(self, admin: AdminClient, progress_topic: str, shard: int) -> None:
        self._admin = admin
        self._progress = progress_topic
        self._shard = shard
        self._seen: dict[str, float] = {}
        """When each topic was last seen to take records."""
        self._away: dict[str, float] = {}
        """Since when each of the others takes none."""
        self._sent: dict[str, float] = {}
        """The topics of the open transaction, or of one that failed, and when it began."""

    def taken(self) -> None:
        """Note that the records have been committed that were looked at last."""
        self._sent.clear()

    def refusal(self, topics: Sequence[str]) -> Refusal | None:
        """Return the refusal of the first of these records whose topic is not ready.

        Raises KafkaUnavailable while that may still pass, and while the shard's manifests have no
        leader that answers: then all of Kafka may be away, which is no fault of a topic. Raises
        KafkaForbidden if we may not write the manifests.
        """
        began = monotonic()
        due = {
            name
            for name in set(topics)
            if began - self._seen.get(name, -LOOK_SECONDS) >= LOOK_SECONDS
        }
        if not due:
            self._sent = dict.fromkeys(topics, began)
            return None
        found = read_topics(self._admin, {*due, self._progress})
        forbidden = {name for name, each in found.items() if each.lacks(AclOperation.WRITE)}
        if self._progress in forbidden:
            raise KafkaForbidden(found[self._progress].lacks(AclOperation.WRITE))
        self._look(due - forbidden, found)
        away = self._away.keys() & due
        late = {name for name in away if began - self._away[name] >= DELIVERY_SECONDS}
        for place, name in enumerate(topics):
            if name in forbidden:
                return Refusal(place, FORBIDDEN, Refused.TOPIC, named=True)
            if name in late:
                return Refusal(place, TAKES_NO_RECORDS, Refused.TOPIC, named=True)
        if away:
            raise KafkaUnavailable(f"{min(away)}: {TAKES_NO_RECORDS}")
        self._sent = dict.fromkeys(topics, began)
        return None

    def _look(self, names: set[str], found: Mapping[str, Topic]) -> None:
        """Note which of these topics take records; a missing one is for the publisher to refuse."""
        answering = set(self._answering(found.values()))
        ready = {
            name
            for name in names
            if name not in found
            or (found[name].takes_records and answering.issuperset(found[name].leaders))
        }
        now = monotonic()
        self._seen.update(dict.fromkeys(ready, now))
        for name in ready:
            self._away.pop(name, None)
        if ready != names and self._leader(found) not in answering:
            raise KafkaUnavailable(f"{self._progress}: {TAKES_NO_RECORDS}")
        for name in names - ready:
            sent = self._sent.get(name, now)
            self._away.setdefault(name, sent if now - sent < RECENT_SECONDS else now)

    def _leader(self, found: Mapping[str, Topic]) -> int:
        """Return the leader of the shard's manifests."""
        leaders = found[self._progress].leaders if self._progress in found else ()
        return leaders[self._shard] if self._shard < len(leaders) else NO_LEADER

    def _answering(self, topics: Collection[Topic]) -> Iterator[int]:
        """Yield the leaders that answer: one that has just died is a leader for some seconds."""
        led = {
            (topic.name, number): leader
            for topic in topics
            for number, leader in enumerate(topic.leaders)
            if leader != NO_LEADER
        }
        one_of_each = {leader: TopicPartition(*partition) for partition, leader in led.items()}
        if not one_of_each:
            return
        latest = dict.fromkeys(one_of_each.values(), LATEST)
        answers = self._admin.list_offsets(latest, request_timeout=ANSWER_SECONDS)
        for asked, answer in answers.items():
            if _has_come(answer):
                yield led[asked.topic, asked.partition]


def _has_come(answer: Future[ListOffsetsResultInfo]) -> bool:
    """Return whether a broker answered; an error of the broker is an answer, too."""
    try:
        return answer.result(2 * ANSWER_SECONDS).offset != OFFSET_INVALID
    except TimeoutError:
        return False
    except KafkaException as error:
        return bool(error.args[0].code() > 0)
