"""Which missing records retention can explain."""

from __future__ import annotations

from typing import Final

import pytest

from outbox.messages.murmur2 import partition_of
from outbox.relay.doubt import Destination
from outbox.relay.trimmed_topic import TrimmedTopic

KEY: Final = b"key-3"
HOMES: Final = {1: 0, 2: 1, 3: 2, 4: 3, 5: 2}
"""The partition of the key by the number of partitions."""


def may_have_lost(
    trimmed: int, *, key: bytes | None = KEY, partition: int | None = None, least: int = 5
) -> bool:
    """Ask about a topic with five partitions, one of them trimmed."""
    topic = TrimmedTopic(partitions=5, least=least, trimmed=frozenset({trimmed}))
    return topic.may_have_lost(Destination("invoices", key, partition))


def test_the_key_has_these_homes() -> None:
    assert {count: partition_of(KEY, count) for count in HOMES} == HOMES


@pytest.mark.parametrize("trimmed", range(5))
def test_a_keyed_record_can_be_gone_from_its_own_partition_alone(trimmed: int) -> None:
    assert may_have_lost(trimmed) is (trimmed == HOMES[5])


@pytest.mark.parametrize("trimmed", range(5))
def test_a_record_with_a_requested_partition_can_be_gone_from_that_one_alone(trimmed: int) -> None:
    assert may_have_lost(trimmed, partition=4, least=0) is (trimmed == 4)


@pytest.mark.parametrize("trimmed", range(5))
def test_a_record_without_a_key_can_be_gone_from_any_partition(trimmed: int) -> None:
    assert may_have_lost(trimmed, key=None)


@pytest.mark.parametrize(("least", "homes"), [(5, {2}), (4, {2, 3}), (2, {1, 2, 3})])
def test_a_topic_that_may_have_grown_has_the_earlier_homes_too(least: int, homes: set[int]) -> None:
    assert {n for n in range(5) if may_have_lost(n, least=least)} == homes


def test_a_topic_of_which_nothing_is_known_may_have_had_one_partition() -> None:
    assert may_have_lost(0, least=0)
