"""The finalized features of a broker, read with ApiVersions v3."""

from __future__ import annotations

from collections.abc import Iterator

from devservers.kafka_wire import CLIENT, AnswerReader, ask, compact

API_VERSIONS, API_VERSIONS_VERSION = 18, 3
FINALIZED_FEATURES_TAG = 2


def finalized_features(port: int, timeout_seconds: float = 2.0) -> dict[str, int]:
    """Return each finalized feature and its level, e.g. `transaction.version`; raises OSError."""
    software = compact(CLIENT) + compact(b"1") + b"\x00"
    answer = AnswerReader(
        ask(port, API_VERSIONS, API_VERSIONS_VERSION, b"\x00" + software, timeout_seconds)
    )
    answer.skip(2)
    for _ in range(answer.varint() - 1):
        answer.skip(6)
        answer.skip_tags()
    answer.skip(4)
    return dict(_features(answer))


def _features(answer: AnswerReader) -> Iterator[tuple[str, int]]:
    for _ in range(answer.varint()):
        tag, size = answer.varint(), answer.varint()
        if tag != FINALIZED_FEATURES_TAG:
            answer.skip(size)
            continue
        for _ in range(answer.varint() - 1):
            name = answer.take(answer.varint() - 1).decode()
            highest, _lowest = answer.numbers(">hh")
            answer.skip_tags()
            yield name, highest
