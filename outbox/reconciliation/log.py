"""Topics, partitions, offsets and single records as the brokers report them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple


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
    written_at_ms: int = 0
