"""The items of a large batch are found without decoding it, wherever a step ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.problems import Problem
from api.ingest.bodies import batch_scan
from api.ingest.bodies.batch_scan import BatchScan, ItemPlace

NAMES = st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=12) | st.sampled_from(['\\"', "[{,", "\\" * 5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
SPACE = st.sampled_from(["", " ", "\n\t"])


def finished(scan: BatchScan) -> BatchScan:
    """Scan to the end."""
    while scan.step():
        pass
    return scan


def scanned(body: bytes) -> list[ItemPlace]:
    """Return the places of the items of a body."""
    return finished(BatchScan(body)).items()


@given(
    items=st.lists(VALUES, min_size=1, max_size=5),
    space=SPACE,
    step=st.integers(min_value=2, max_value=40),
    most_parts=st.integers(min_value=1, max_value=40),
    plain=st.booleans(),
)
def test_the_items_are_those_of_the_whole_document(
    items: list[Any], space: str, step: int, most_parts: int, plain: bool
) -> None:
    texts = [space + json.dumps(item, ensure_ascii=plain) + space for item in items]
    body = f'{space}{{"items"{space}:[{",".join(texts)}]{space}}}'.encode()
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(batch_scan, "STEP_BYTES", step)
        changed.setattr(batch_scan, "STEP_PARTS", most_parts)
        found = scanned(body)
    assert [body[place.start : place.end].decode() for place in found] == texts
    assert all(place.parts <= 1 + len(texts[n]) for n, place in enumerate(found))


def refusal(body: bytes) -> Problem:
    with pytest.raises(Problem) as refused:
        scanned(body)
    return refused.value


def test_the_scan_stops_at_the_first_item_too_many() -> None:
    scan = BatchScan(b'{"items":[' + b"1," * 500_000)
    with pytest.raises(Problem) as refused:
        finished(scan)
    assert refused.value.slug == "batch-too-large"
    assert scan._at < 3 * batch_scan.STEP_BYTES


def test_a_step_of_many_parts_ends_before_one_of_few() -> None:
    many, few = BatchScan(b"[" * 1_000_000), BatchScan(b" " * 1_000_000)
    assert many.step()
    assert few.step()
    assert (many._at, few._at) == (batch_scan.STEP_PARTS, batch_scan.STEP_BYTES)


def test_the_scan_stops_when_there_are_more_parts_than_all_valid_items_have() -> None:
    scan = BatchScan(b'{"items":[[' + b"{}," * 1_000_000)
    with pytest.raises(Problem) as refused:
        finished(scan)
    assert refused.value.slug == "payload-too-large"
    assert scan._at < 2 * batch_scan.PARTS_MAX


@pytest.mark.parametrize(
    "body",
    [
        b'{"items":[1',
        b'{"items":["a]}',
        b'{"items":["a\\',
        b'{"items":[1}}',
        b'{"items":[1]]',
        b'{"items":[1]}}',
        b'{"items":[1]',
        b"\xef\xbb\xbf" + b'{"items":[1]}',
        b'{"items":[1]}\x00',
    ],
)
def test_what_is_broken_around_the_items_is_malformed(body: bytes) -> None:
    assert refusal(body).slug == "malformed-json"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b"[1]", ""),
        (b"[[1]]", ""),
        (b"{}", "/items"),
        (b'{"items":{}}', "/items"),
        (b'{"items":[ ]}', "/items"),
        (b'{"items":[1],"items":[2]}', "/items"),
        (b'{"items":[1],"more":[2]}', "/more"),
        (b'{"more":[2],"items":[1]}', "/more"),
        (b'{"items":[1],"more":"' + b"x" * 5000 + b'"}', ""),
    ],
)
def test_what_is_wrong_around_the_items_is_named(body: bytes, pointer: str) -> None:
    assert refusal(body).errors[0][0] == pointer
