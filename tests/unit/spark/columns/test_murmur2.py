"""The partitioner against the vectors of Kafka's own UtilsTest."""

from __future__ import annotations

import pytest

from spark.columns.murmur2 import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_hashes_as_kafkas_own_tests_have_it(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % 2**32


def test_the_sign_bit_is_cut_off() -> None:
    assert partition_of(b"foobar", 1000) == (-790332482 & 0x7FFFFFFF) % 1000
