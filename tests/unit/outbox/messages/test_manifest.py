"""The manifest's bytes: every value survives a round trip, every damage is refused."""

from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import InvalidManifest
from outbox.messages.manifest import (
    HELD,
    MAX_ENTRIES,
    PUBLISHED,
    PUBLISHED_BEFORE,
    START,
    Entry,
    Kind,
    Manifest,
    Position,
    decode,
    encode,
)

INSTALLATION = UUID("0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10")
POSITIONS = st.builds(Position, st.integers(0, 2**48 - 1), st.integers(0, 2048))
ENTRIES = st.builds(
    Entry,
    st.binary(min_size=16, max_size=16),
    st.sampled_from([PUBLISHED, PUBLISHED_BEFORE, HELD]),
)
MANIFESTS = st.builds(
    Manifest,
    installation=st.uuids(),
    shard=st.integers(0, 2**16 - 1),
    gen=st.integers(0, 2**64 - 1),
    kind=st.sampled_from(Kind),
    batch_no=st.integers(0, 2**64 - 1),
    prev_crc=st.integers(0, 2**32 - 1),
    after=POSITIONS,
    to=POSITIONS,
    entries=st.lists(ENTRIES, max_size=20).map(tuple),
)


def make_manifest(entries: tuple[Entry, ...] = ()) -> Manifest:
    return Manifest(
        installation=INSTALLATION,
        shard=3,
        gen=2,
        kind=Kind.BATCH,
        batch_no=7,
        prev_crc=0xCAFE,
        after=START,
        to=Position(900, len(entries)),
        entries=entries,
    )


@given(MANIFESTS)
def test_a_manifest_survives_the_round_trip(manifest: Manifest) -> None:
    assert decode(encode(manifest)) == manifest


def test_every_single_flipped_bit_is_detected() -> None:
    value = encode(make_manifest((Entry(bytes(16), PUBLISHED), Entry(b"\xff" * 16, HELD))))
    for bit in range(len(value) * 8):
        damaged = bytearray(value)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidManifest):
            decode(bytes(damaged))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_not_misread(value: bytes) -> None:
    with pytest.raises(InvalidManifest):
        decode(value)


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        encode(make_manifest((Entry(bytes(16), PUBLISHED),) * (MAX_ENTRIES + 1)))


def test_an_unknown_version_is_refused() -> None:
    body = b"\x03" + encode(make_manifest())[1:-4]
    with pytest.raises(InvalidManifest, match="version 3"):
        decode(body + crc32(body).to_bytes(4))
