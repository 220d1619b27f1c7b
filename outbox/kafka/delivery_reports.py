"""The delivery reports of a batch: what Kafka acknowledged, what it refuses, and whom it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, Message

from outbox.errors import PublisherFenced
from outbox.relay.protocol.answers import UNKNOWN_OFFSET, DeliveryReport
from outbox.relay.protocol.state import Refusal, Refused

ANY_PARTITION: Final = -1
FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError._FATAL,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
REFUSED: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE: Refused.RECORD,
    KafkaError.INVALID_MSG: Refused.RECORD,
    KafkaError.INVALID_RECORD: Refused.RECORD,
    KafkaError.RECORD_LIST_TOO_LARGE: Refused.RECORD,
    KafkaError._UNKNOWN_PARTITION: Refused.RECORD,
    KafkaError.INVALID_TIMESTAMP: Refused.TOPIC,
    KafkaError.TOPIC_EXCEPTION: Refused.TOPIC,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Refused.TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Refused.TOPIC,
    KafkaError._UNKNOWN_TOPIC: Refused.TOPIC,
}
"""Permanent refusals of a record or its topic: a retry changes nothing.

A topic refuses the time of its records if the brokers' clock is too far from PostgreSQL's for it.
"""


EACH_NAMED: Final = KafkaError(KafkaError.INVALID_RECORD).name()
"""Of a request with several invalid records Kafka names each; the others get another error."""


class DeliveryReports:
    """The delivery reports of one batch; those of a dropped handle are never read."""

    def __init__(self, count: int) -> None:
        self.offsets = [UNKNOWN_OFFSET] * count
        self._partitions = [ANY_PARTITION] * count
        self.good = 0
        self._refused: list[Refusal] = []
        self._failure: str | None = None
        """The first record whose error is no refusal, and not that its transaction has failed."""
        self._fenced: KafkaError | None = None

    def at(self, place: int) -> Callable[[KafkaError | None, Message], None]:
        """Return the callback for the record at a place."""
        return partial(self._note, place)

    def refuse_unsent(self, place: int, error: KafkaError) -> None:
        """Note that the library refused a record before it was sent with others."""
        self._refused.append(Refusal(place, error.name(), REFUSED[error.code()], named=True))

    def delivery(self) -> DeliveryReport:
        """Return the result of the batch. Raises PublisherFenced if a report shows a fence."""
        if self._fenced is not None:
            raise PublisherFenced(self._fenced.name())
        refusal = self._refusal()
        return DeliveryReport(
            self.good,
            refusal,
            self._alike(refusal),
            partitions=self._partitions,
            offsets=self.offsets,
            failure=self._failure,
        )

    def _refusal(self) -> Refusal | None:
        """Return the refusal that says most: of a topic, of one record, or of several together.

        Kafka refuses the records of one request together, for example those that are too large for
        the topic only in sum. Then its report names no record.
        """
        if not self._refused:
            return None
        first = min(self._refused, key=_certainty)
        sure = first.refused is Refused.TOPIC or len(self._refused) == 1
        return first._replace(named=first.named or sure or first.error == EACH_NAMED)

    def _alike(self, refusal: Refusal | None) -> Sequence[int]:
        """Return the places of the other records that Kafka has named with that error."""
        if refusal is None or refusal.error != EACH_NAMED:
            return ()
        places = (each.place for each in self._refused if each.error == EACH_NAMED)
        return [place for place in places if place != refusal.place]

    def _note(self, place: int, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.good += 1
            offset, partition = message.offset(), message.partition()
            self.offsets[place] = UNKNOWN_OFFSET if offset is None else offset
            self._partitions[place] = ANY_PARTITION if partition is None else partition
        elif error.fatal() or error.code() in FENCED:
            self._fenced = error
        elif error.code() in REFUSED:
            self._refused.append(Refusal(place, error.name(), REFUSED[error.code()]))
        elif self._failure is None and error.code() != KafkaError._PURGE_QUEUE:
            self._failure = f"{message.topic()}: {error.name()}"


def _certainty(refusal: Refusal) -> tuple[bool, bool, int]:
    return refusal.refused is not Refused.TOPIC, not refusal.named, refusal.place
