"""The parked topic: an idempotent producer; a copy is for operators and no delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import idempotent_producer_config
from outbox.messages.record import Record

FLUSH_SECONDS: Final = 10.0
"""Longer than message.timeout.ms (8 s), so each report has arrived by then."""
REFUSED: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
    }
)
"""Permanent refusals of a record: a retry changes nothing."""


class KafkaParkedTopic:
    """The ParkedTopic on Kafka; opens its producer at the first copy."""

    def __init__(self, bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> None:
        self._config = idempotent_producer_config(bootstrap_servers, kafka_config)
        self._producer: Producer | None = None

    def copy(self, records: Sequence[Record], at_ms: int) -> Sequence[str | None]:
        """Write records and wait for their reports; see ParkedTopic.

        A broker refuses a batch as a whole, so a refused record is sent again alone.
        """
        refusals = self._send(records, at_ms)
        if len(records) == 1:
            return refusals
        return [
            None if refusal is None else self._send([record], at_ms)[0]
            for record, refusal in zip(records, refusals, strict=True)
        ]

    def _send(self, records: Sequence[Record], at_ms: int) -> list[str | None]:
        errors: list[KafkaError | None] = [KafkaError(KafkaError._MSG_TIMED_OUT)] * len(records)
        try:
            if self._producer is None:
                self._producer = Producer(self._config)
            for place, record in enumerate(records):
                _produce(self._producer, record, at_ms, errors, place)
            self._producer.flush(FLUSH_SECONDS)
        except (BufferError, KafkaException) as error:
            raise KafkaUnavailable(str(error)) from error
        return _refusals(errors)


def _produce(
    producer: Producer, record: Record, at_ms: int, errors: list[KafkaError | None], place: int
) -> None:
    """Produce one record; its report, or the library's own refusal, goes to its place."""
    topic, key, value, _, headers = record
    report = partial(_note, errors, place)
    try:
        producer.produce(
            topic, value, key, headers=list(headers), on_delivery=report, timestamp=at_ms
        )
    except KafkaException as error:
        errors[place] = error.args[0]


def _note(
    errors: list[KafkaError | None], place: int, error: KafkaError | None, _: Message
) -> None:
    errors[place] = error


def _refusals(errors: Sequence[KafkaError | None]) -> list[str | None]:
    """Return each record's permanent refusal. Raises KafkaUnavailable for another error."""
    for error in errors:
        if error is not None and error.code() not in REFUSED:
            raise KafkaUnavailable(f"{error.name()}: {error.str()}")
    return [None if error is None else error.name() for error in errors]
