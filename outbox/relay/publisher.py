"""What a shard's relay asks of Kafka: a transactional producer, and the log of its manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from outbox.messages.record import Record
from outbox.relay.protocol.answers import DeliveryReport
from outbox.relay.protocol.state import Found

THIS_CLOCK: Final = 0
"""The timestamp of a record comes from the clock of the publishing process."""


class Cluster(NamedTuple):
    """The current identity of the Kafka cluster and its progress topic."""

    cluster_id: str
    topic_id: str
    partitions: int


class Publisher(Protocol):
    """A shard's transactional producer: one handle at a time.

    Methods raise PublisherFenced when a newer producer of the shard exists or the handle cannot
    be used any more, and KafkaUnavailable for every other error: the transaction is in doubt then.
    """

    def serve(self) -> None:
        """Take what the handle has noted since the last call, such as lost connections.

        An idle handle keeps its notes in memory until then, without a bound while Kafka is away.
        """

    def fence(self, installation: UUID) -> None:
        """Create a handle; return when older ones are fenced and their transactions complete."""

    def begin(self) -> None:
        """Begin a transaction."""

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

    def commit(self) -> None:
        """Commit the transaction; after an exception its result is unknown."""

    def drop(self) -> None:
        """Drop the handle without waiting for it; its late reports are ignored. Never raises."""


class ProgressLog(Protocol):
    """The manifests of one shard in Kafka. Methods raise KafkaUnavailable."""

    def cluster(self) -> Cluster:
        """Return the identity of the cluster and the progress topic."""

    def bounds(self) -> tuple[int, int]:
        """Return the start and end offset of the shard's log, with aborted records and markers."""

    def read(self, first: int, end: int) -> tuple[tuple[Found, ...], bool]:
        """Read committed manifests from ``first`` on, and whether nothing is left below ``end``.

        It may return only some of them. After some seconds it returns none and False if the broker
        answers.
        """
