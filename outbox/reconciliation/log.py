"""Topics, partitions, offsets and single records as the brokers report them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol


class Partition(NamedTuple):
    """One partition of a Kafka topic."""

    topic: str
    number: int


WHOLE_TOPIC: Final = -1
"""The partition number that means the whole topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """A topic as the brokers describe it."""

    id: str
    """Assigned when the topic is created; it changes if the topic is deleted and recreated."""
    partitions: int
    compacts: bool = False
    """Its cleanup.policy contains ``compact``, if we may read the policy."""


class LogEnd(StrEnum):
    """The offset of a partition to ask for."""

    START = "start"
    HIGH_WATERMARK = "high_watermark"
    LAST_STABLE = "last_stable"
    """The offset below which every transaction has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """The offsets that could be read, and per partition why one could not."""

    offsets: Mapping[Partition, int]
    errors: Mapping[Partition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One record, read again by its offset to compare it field by field; never stored."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    stamped_by: str | None = None
    """Whose clock set its time: the relay's (``CreateTime``) or the broker's."""
    written_at_ms: int = 0
    """Its time, by that clock."""


class LogReader(Protocol):
    """Asks the brokers directly; used by one thread, and each call takes a bounded time."""

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return every partition of those topics that exist. Raises KafkaUnavailable."""

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return one offset per partition; a partition that fails alone is in ``errors``.

        Raises KafkaUnavailable when no broker answers.
        """

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
        """Return the description of each topic, or why there is none; a missing topic is left out.

        Raises KafkaUnavailable.
        """

    def next_records(self, places: Mapping[Partition, int]) -> Mapping[Partition, LogRecord | None]:
        """Return the first committed record at or after each offset, None if there is none.

        A partition whose offset has expired is left out. Raises KafkaUnavailable when one does not
        answer in time, KafkaForbidden when this principal may not read it.
        """

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Read single committed records by offset; records that no longer exist are left out.

        Raises KafkaForbidden for a topic that this principal may not read.
        """
