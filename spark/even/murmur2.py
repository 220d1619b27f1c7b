"""Kafka's choice of a partition for a key: murmur2 as in its Java producer and in librdkafka.

Source of the rule: ``org.apache.kafka.common.utils.Utils.murmur2`` and ``toPositive``. Pure.
"""

from __future__ import annotations

import struct
from typing import Final

SEED: Final = 0x9747B28C
M: Final = 0x5BD1E995
R: Final = 24
MASK: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF


def home_of(key: bytes) -> int:
    """Return the hash whose remainder by the number of partitions is the partition of a key."""
    return murmur2(key) & POSITIVE


def murmur2(key: bytes) -> int:
    """Return the unsigned 32-bit murmur2 of a key with Kafka's seed."""
    hashed = (SEED ^ len(key)) & MASK
    words, rest = divmod(len(key), 4)
    for word in struct.unpack_from(f"<{words}I", key):
        mixed = word * M & MASK
        hashed = hashed * M & MASK ^ (mixed ^ mixed >> R) * M & MASK
    if rest:
        hashed = (hashed ^ int.from_bytes(key[-rest:], "little")) * M & MASK
    hashed = (hashed ^ hashed >> 13) * M & MASK
    return hashed ^ hashed >> 15
