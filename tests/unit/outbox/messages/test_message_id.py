"""Message ids: order, shard and random bits survive the round trip; nothing else parses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import InvalidMessageId
from outbox.messages.message_id import (
    NONCE_BITS,
    ROWS_PER_TRANSACTION,
    SHARDS,
    XID_LIMIT,
    Nonce,
    Shard,
    half_id_of,
    message_id_of,
    message_id_text,
    parse_message_id,
    shard_in,
    shard_of,
)

XIDS = st.integers(0, XID_LIMIT - 1)
ROWS = st.integers(0, ROWS_PER_TRANSACTION - 1)
SHARD = st.integers(0, SHARDS - 1).map(Shard)
NONCES = st.integers(0, (1 << NONCE_BITS) - 1).map(Nonce)


@given(XIDS, ROWS, SHARD, NONCES)
def test_a_message_id_survives_the_round_trip(
    xid: int, row: int, shard: Shard, nonce: Nonce
) -> None:
    half_id = half_id_of(xid, row, shard)
    uuid = message_id_of(half_id, nonce)
    assert parse_message_id(str(uuid)) == (half_id, nonce)
    assert message_id_text(half_id, nonce) == str(uuid)
    assert (uuid.version, shard_in(half_id), half_id < 1 << 63) == (8, shard, True)


@given(XIDS, XIDS, ROWS, ROWS, SHARD)
def test_half_ids_rise_with_the_transaction_that_inserts(
    older: int, newer: int, row: int, other: int, shard: Shard
) -> None:
    if older < newer:
        assert half_id_of(older, row, shard) < half_id_of(newer, other, shard)


@given(st.text(max_size=40))
def test_any_other_text_is_no_message_id(text: str) -> None:
    with pytest.raises(InvalidMessageId):
        parse_message_id(text)


@pytest.mark.parametrize(
    "text",
    [
        "0f6c1c0e-8d0b-4c55-9a54-6f2b7c1d9e10",
        "{0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e1}",
        "0f6c1c0e8d0b8c559a546f2b7c1d9e10",
        "0f6c1c0e-8d0b-8c55-1a54-6f2b7c1d9e10",
        "urn:uuid:0f6c1c0e-8d0b-8c55-9a54-6f2",
        "0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10a",
        "0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10\n",
    ],
)
def test_other_spellings_and_versions_are_refused(text: str) -> None:
    with pytest.raises(InvalidMessageId):
        parse_message_id(text)


def test_messages_without_a_key_spread_over_all_shards() -> None:
    assert {shard_of("t", None, n) for n in range(SHARDS)} == set(range(SHARDS))


@pytest.mark.parametrize(
    ("xid", "row", "shard"), [(-1, 0, 0), (0, 2048, 0), (0, 0, 16), (1 << 48, 0, 0)]
)
def test_a_part_that_does_not_fit_its_bits_is_refused(xid: int, row: int, shard: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        half_id_of(xid, row, Shard(shard))
