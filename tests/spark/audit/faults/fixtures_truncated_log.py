"""Truncates the log of a partition, as a machine crash before a flush does."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BATCH_HEAD = struct.Struct(">qiibIh")
"""Base offset, length after the first two fields, leader epoch, magic, CRC, attributes: the
beginning of a record batch of Kafka's protocol, version 2."""
LENGTH_AFTER = 12
CONTROL = 0x20


class Batch(NamedTuple):
    """A record batch in a log segment: its position and its first offset."""

    at: int
    base_offset: int
    control: bool


def cut_tail(data_dir: Path, topic: str, partition: int, transactions: int) -> int:
    """Remove the last transactions from a stopped broker's log; return its new end offset.

    Each transaction of the partition ends with its marker and holds one batch or more.
    """
    (segment,) = sorted((data_dir / f"{topic}-{partition}").glob("*.log"))
    batches = list(_batches(segment.read_bytes()))
    markers = [each for each in batches if each.control]
    assert batches[-1].control, "a transaction is open"
    last_kept = markers[-1 - transactions]
    first_gone = next(each for each in batches if each.at > last_kept.at)
    with segment.open("r+b") as file:
        file.truncate(first_gone.at)
    return first_gone.base_offset


def _batches(segment: bytes) -> Iterator[Batch]:
    at = 0
    while at < len(segment):
        base, length, _, magic, _, attributes = BATCH_HEAD.unpack_from(segment, at)
        assert magic == 2
        yield Batch(at, base, bool(attributes & CONTROL))
        at += LENGTH_AFTER + length
