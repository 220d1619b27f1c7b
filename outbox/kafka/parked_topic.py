"""The parked topic: an idempotent producer; a copy is for operators and no delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import idempotent_producer_config
from outbox.kafka.delivery_reports import REFUSED
from outbox.messages.record import Record
from outbox.relay.protocol.state import Refused

FLUSH_SECONDS: Final = 10.0
"""Longer than message.timeout.ms (8 s), so each report has arrived by then."""


class KafkaParkedTopic:
    """The topic for parked messages; called from a thread. Opens its producer at the first copy."""

    def __init__(self, bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> None:
        self._config = idempotent_producer_config(bootstrap_servers, kafka_config)
        self._producer: Producer | None = None

    def copy(self, records: Sequence[Record], at_ms: int) -> Sequence[str | None]:
        """Write records of this time; return for each None, or the error of a permanent refusal.

        Each is sent alone, because a broker refuses a batch as a whole. Raises KafkaUnavailable
        when any record may be missing in the topic.
        """
        return [self._copy(record, at_ms) for record in records]

    def _copy(self, record: Record, at_ms: int) -> str | None:
        """Write one record and return its permanent refusal."""
        topic, key, value, _, headers = record
        reports: list[KafkaError | None] = []
        try:
            self._producer = self._producer or Producer(self._config)
            self._producer.produce(
                topic,
                value,
                key,
                headers=list(headers),
                on_delivery=lambda error, _: reports.append(error),
                timestamp=at_ms,
            )
            self._producer.flush(FLUSH_SECONDS)
        except KafkaException as error:
            reports.append(error.args[0])
        except BufferError as error:
            raise KafkaUnavailable(str(error)) from error
        refusal = reports[0] if reports else KafkaError(KafkaError._MSG_TIMED_OUT)
        if refusal is not None and REFUSED.get(refusal.code()) is not Refused.RECORD:
            raise KafkaUnavailable(f"{refusal.name()}: {refusal.str()}")
        return None if refusal is None else refusal.name()
