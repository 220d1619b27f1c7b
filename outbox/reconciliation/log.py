"""What the brokers say of topics, partitions, offsets and single records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple


class Partition(NamedTuple):
    """One partition of a Kafka topic."""

    topic: str
    number: int


ANY_PARTITION: Final = -1
"""The number that stands for a topic as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """A topic as the brokers describe it."""

    id: str
    """Given when the topic is made; another one after it was deleted and made anew."""
    partitions: int
    compacts: bool = False
    """Its cleanup.policy names ``compact``, as far as we may read it."""


class LogEnd(StrEnum):
    """Which offset of a partition is asked for."""

    START = "start"
    HIGH_WATERMARK = "high_watermark"
    LAST_STABLE = "last_stable"
    """The offset below which every transaction has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """The offsets that could be read, and why the others could not."""

    offsets: Mapping[Partition, int]
    errors: Mapping[Partition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One record read again by its offset, to compare it field by field; never stored."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    stamped_by: str | None = None
    """Whose clock its time is of: the relay's (``CreateTime``) or the broker's."""
