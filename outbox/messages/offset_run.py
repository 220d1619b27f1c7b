"""Offset runs: where the records of a batch are in Kafka, and their bytes in a manifest.

====== ==== ==========================================================================
offset size field, per run
====== ==== ==========================================================================
0      2    length of the topic's name
2      n    topic, UTF-8
2+n    4    partition
6+n    8    offset of the first record
14+n   4    number of records, at consecutive offsets
====== ==== ==========================================================================

Pure: no I/O, no clock.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from outbox.errors import InvalidManifest

UNKNOWN: Final = 0xFFFF_FFFF
"""The number of runs, if the writer does not know the runs."""

_COUNT: Final = struct.Struct(">I")
_LENGTH: Final = struct.Struct(">H")
_PLACE: Final = struct.Struct(">IQI")


class OffsetRun(NamedTuple):
    """Records of one batch at consecutive offsets of one partition."""

    topic: str
    partition: int
    first: int
    records: int

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.first + self.records


OffsetRuns = tuple[OffsetRun, ...]


def runs_of(
    topics: Iterable[str], partitions: Sequence[int], offsets: Sequence[int]
) -> OffsetRuns | None:
    """Return the runs of records by topic, partition and offset; None if an offset is unknown."""
    if offsets and min(offsets) < 0:
        return None
    open_runs: dict[tuple[str, int], list[int]] = {}
    runs: list[tuple[tuple[str, int], list[int]]] = []
    for topic, partition, offset in zip(topics, partitions, offsets, strict=True):
        place = (topic, partition)
        run = open_runs.get(place)
        if run is not None and run[0] + run[1] == offset:
            run[1] += 1
        else:
            run = open_runs[place] = [offset, 1]
            runs.append((place, run))
    return tuple(OffsetRun(*place, *run) for place, run in runs)


def encode_runs(runs: OffsetRuns | None) -> bytes:
    """Return the bytes of the runs, their number first. Raises struct.error if one is too large."""
    if runs is None:
        return _COUNT.pack(UNKNOWN)
    parts = [_COUNT.pack(len(runs))]
    for topic, *place in runs:
        name = topic.encode()
        parts += [_LENGTH.pack(len(name)), name, _PLACE.pack(*place)]
    return b"".join(parts)


def decode_runs(value: bytes, at: int, end: int) -> OffsetRuns | None:
    """Read the runs in ``value[at:end]``. Raises InvalidManifest if they do not fill it exactly."""
    try:
        (count,) = _COUNT.unpack_from(value, at)
        at += _COUNT.size
        runs: list[OffsetRun] = []
        while count != UNKNOWN and len(runs) < count and at < end:
            run, at = _decode_run(value, at)
            runs.append(run)
    except (struct.error, UnicodeDecodeError) as error:
        raise InvalidManifest("its offset runs are cut") from error
    if at != end or len(runs) != (0 if count == UNKNOWN else count):
        raise InvalidManifest("its offset runs do not fill it")
    return None if count == UNKNOWN else tuple(runs)


def _decode_run(value: bytes, at: int) -> tuple[OffsetRun, int]:
    (length,) = _LENGTH.unpack_from(value, at)
    at += _LENGTH.size
    topic = value[at : at + length].decode()
    at += length
    return OffsetRun(topic, *_PLACE.unpack_from(value, at)), at + _PLACE.size
