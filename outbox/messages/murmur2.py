"""Kafka's choice of a partition for a key: murmur2 as in its Java producer and in librdkafka.

Source of the rule: ``org.apache.kafka.common.utils.Utils.murmur2`` and ``toPositive``. Pure.
"""

from __future__ import annotations

from typing import Final

SEED: Final = 0x9747B28C
M: Final = 0x5BD1E995
R: Final = 24
MASK: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key in a topic with this number of partitions."""
    return (murmur2(key) & POSITIVE) % partitions


def murmur2(key: bytes) -> int:
    """Return the unsigned 32-bit murmur2 of a key with Kafka's seed."""
    hashed = (SEED ^ len(key)) & MASK
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        mixed = int.from_bytes(key[at : at + 4], "little") * M & MASK
        mixed = (mixed ^ mixed >> R) * M & MASK
        hashed = hashed * M & MASK ^ mixed
    if rest := key[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * M & MASK
    hashed = (hashed ^ hashed >> 13) * M & MASK
    return hashed ^ hashed >> 15
