"""A shard's transactional producer: one handle at a time, dropped at the first doubt.

A handle in doubt is never aborted, purged or committed again: each of these sends more frames of
the same epoch, and their answers prove nothing about the first frame. A new handle fences it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from time import monotonic
from typing import Any, Final
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, Producer
from msgspec.structs import replace

from outbox.errors import KafkaUnavailable, PublisherFenced, TransactionStuck
from outbox.failpoints import hit
from outbox.kafka.client_config import ConnectionRefusals, transactional_id
from outbox.kafka.delivery_reports import ANY_PARTITION, FENCED, REFUSED, DeliveryReports
from outbox.kafka.permission import needed
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.record import Record
from outbox.relay.protocol.answers import THIS_CLOCK, DeliveryReport
from outbox.relay.protocol.takeover import FENCE_SECONDS

FLUSH_SECONDS: Final = 10.0
"""Longer than message.timeout.ms (8 s), so each report has arrived by then."""
ALONE_SECONDS: Final = 60.0
"""So long after a refusal that names no record each one is sent alone: then Kafka names it."""
ALONE_IN_A_BATCH_SECONDS: Final = 5.0
"""The rest of a batch is then sent together: a relay must give signs of life."""
THE_IDS: Final = "the transactional ids that begin with outbox."


class KafkaPublisher:
    """The transactional producer of one shard.

    Methods raise PublisherFenced when a newer producer of the shard exists or the handle cannot
    be used any more, and KafkaUnavailable for every other error: the transaction is in doubt then.
    """

    def __init__(
        self,
        config: Callable[[str], dict[str, Any]],
        shard: int,
        progress_topic: str = PROGRESS_TOPIC,
    ) -> None:
        """Create a publisher; ``config`` returns the properties for a transactional id."""
        self._config = config
        self._shard = shard
        self._progress_topic = progress_topic
        self._handle: Producer | None = None
        self._refusals = ConnectionRefusals()
        self._alone_until = monotonic()
        """Until then each record is sent alone."""

    def serve(self) -> None:
        """Take what the handle has noted since the last call, such as lost connections.

        An idle handle keeps its notes in memory until then, without a bound while Kafka is away.
        """
        if self._handle is not None:
            self._handle.poll(0)

    def fence(
        self, installation: UUID, number: int = 0, each_within: float = FENCE_SECONDS
    ) -> None:
        """Create a handle; return when older ones are fenced and their transactions complete.

        The id after the current one is fenced first: an owner whose step to it was lost with
        PostgreSQL's tail may still use it. ``each_within`` is the time limit of each fence (s).
        """
        with _translated(self._explain):
            for each in (number + 1, number):
                self.drop()
                self._refusals = ConnectionRefusals()
                config = self._config(transactional_id(installation, self._shard, each))
                self._handle = Producer({**config, "error_cb": self._refusals.note})
                self._handle.init_transactions(each_within)

    def begin(self) -> None:
        """Begin a transaction."""
        with _translated():
            self._open().begin_transaction()

    def publish(
        self,
        records: Sequence[Record],
        manifest: bytes,
        at_ms: int = THIS_CLOCK,
        *,
        apart: bool = False,
    ) -> DeliveryReport:
        """Produce the records in order, then the manifest; flush, and count the reports.

        ``apart``: the manifest only after Kafka has acknowledged each record. Only then a refusal
        is reported. ``at_ms`` is the timestamp of all of them, in milliseconds since the epoch.
        """
        reports, listed = DeliveryReports(len(records)), DeliveryReports(1)
        apart = apart or monotonic() < self._alone_until
        with _translated():
            taken = self._produce(records, reports, at_ms)
            if apart:
                self._open().flush(FLUSH_SECONDS)
                taken = reports.good == len(records)
            hit("relay.after_data_flush")
            if taken:
                self._produce_manifest(manifest, listed, at_ms)
                self._open().flush(FLUSH_SECONDS)
        listing = listed.delivery()
        if listing.refused is not None:
            raise KafkaUnavailable(f"{self._progress_topic}: {listing.refused.error}")
        offset = listing.offsets[0]
        delivery = replace(reports.delivery(), offset=offset)
        if delivery.refused is not None and not delivery.refused.named:
            self._alone_until = monotonic() + ALONE_SECONDS
        return delivery if apart else replace(delivery, refused=None)

    def commit(self) -> None:
        """Commit within the transaction's time limit; after an exception its result is unknown."""
        with _translated():
            self._open().commit_transaction(-1)

    def drop(self) -> None:
        """Drop the handle without waiting for it; its late reports are ignored. Never raises."""
        handle, self._handle = self._handle, None
        if handle is not None:
            box = [handle]
            del handle
            Thread(target=box.clear, name="outbox-handle-reaper", daemon=True).start()

    def _explain(self, text: str) -> str:
        """Return the text of an error, with why the handle's connections were refused."""
        with suppress(KafkaException):
            self.serve()
        return self._refusals.explain(text)

    def _open(self) -> Producer:
        if self._handle is None:
            raise KafkaUnavailable("no handle is open")
        return self._handle

    def _produce_manifest(self, manifest: bytes, listed: DeliveryReports, at_ms: int) -> None:
        self._open().produce(
            self._progress_topic,
            value=manifest,
            partition=self._shard,
            on_delivery=listed.at(0),
            timestamp=at_ms,
        )

    def _produce(self, records: Sequence[Record], reports: DeliveryReports, at_ms: int) -> bool:
        """Produce the records, and return whether the library has taken all of them.

        Where each is sent alone, the first that Kafka does not acknowledge ends the batch.
        """
        produce, flush = self._open().produce, self._open().flush
        now = monotonic()
        alone_until = min(self._alone_until, now + ALONE_IN_A_BATCH_SECONDS)
        alone = now < alone_until
        for place, (topic, key, value, partition, headers) in enumerate(records):
            try:
                produce(
                    topic,
                    value,
                    key,
                    ANY_PARTITION if partition is None else partition,
                    reports.at(place),
                    timestamp=at_ms,
                    headers=list(headers),
                )
            except KafkaException as error:
                if error.args[0].code() in REFUSED:
                    reports.refuse_unsent(place, error.args[0])
                elif error.args[0].code() != KafkaError._STATE:
                    raise
                return False
            if not place:
                hit("relay.after_first_produce")
            if alone and monotonic() < alone_until:
                flush(FLUSH_SECONDS)
                if reports.good <= place:
                    return False
        return True


@contextmanager
def _translated(explain: Callable[[str], str] = str) -> Iterator[None]:
    """Translate the library's errors; after any but a fence the result is unknown."""
    try:
        yield
    except BufferError as error:
        raise KafkaUnavailable("the producer's queue is full") from error
    except SystemError as error:
        # A fatal error that the library raises inside a delivery callback arrives as SystemError.
        raise PublisherFenced(str(error.__cause__)) from error
    except KafkaException as error:
        kafka_error = error.args[0]
        words = f"{kafka_error.name()}: {kafka_error.str()}"
        if kafka_error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            words = f"{kafka_error.name()}: {needed('WRITE', THE_IDS)}"
        if kafka_error.fatal() or kafka_error.code() in FENCED:
            raise PublisherFenced(words) from error
        if kafka_error.code() == KafkaError.CONCURRENT_TRANSACTIONS:
            raise TransactionStuck(words) from error
        raise KafkaUnavailable(explain(words)) from error
