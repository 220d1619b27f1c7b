"""The items of a batch are counted first, then decoded one by one."""

from __future__ import annotations

import pytest

from api.http.json_body import Search
from api.http.problems import Problem
from api.ingest.bodies.batch_items import item_of, refuse_envelope, slices_of
from api.ingest.schemas import END_ITEM


def batch(*items: bytes) -> bytes:
    """Return the body of a batch."""
    return b'{"items":[' + b" , ".join(items) + b"]}"


def test_items_are_cut_out_of_a_body_with_surrogates_at_their_own_places() -> None:
    items = [b'{"a":"\\ud800"}', b'"\\ud83d\\ude00"', b'"\\\\ud800"', b"1", b'"\\udfff"', b"[ ]"]
    assert slices_of(batch(*items)) == items
    assert slices_of(batch(items[1])) == [items[1]]


def test_items_are_counted_before_they_are_judged() -> None:
    assert len(slices_of(batch(*[b"{}"] * 1000))) == 1000
    for excess in (b"{}", b"not JSON at all", b'"\\ud800"'):
        with pytest.raises(Problem) as refused:
            slices_of(batch(*[b"{}"] * 1000, excess))
        assert refused.value.slug == "batch-too-large" or excess == b"not JSON at all"


def test_each_item_of_a_batch_is_decoded_separately() -> None:
    body = (
        b'{"items":[{"message_id":"x","decision":"COMMIT"},{"message_id":"\\ud800",'
        b'"decision":"COMMIT"},{"decision":"COMMIT"},5,'
        b'{"message_id":"y","decision":"COMMIT","decision":"ROLLBACK"}]}'
    )
    slices, search = slices_of(body), Search()
    refuse_envelope(body, slices)
    first = item_of(slices[0], END_ITEM, search)
    others = list[object]()
    for text in slices[1:]:
        other = item_of(text, END_ITEM, search)
        others.append(other)
    assert not isinstance(first, Problem)
    pointers = [each.errors[0][0] for each in others if isinstance(each, Problem)]
    assert pointers == ["/message_id", "/message_id", "", "/decision"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b"[]", ""),
        (b"{}", "/items"),
        (b'{"items":{}}', "/items"),
        (b'{"items":[],"items":[]}', "/items"),
        (b'{"items":[],"more":1}', "/more"),
    ],
)
def test_an_invalid_envelope_refuses_the_whole_batch(body: bytes, pointer: str) -> None:
    with pytest.raises(Problem) as refused:
        refuse_envelope(body, slices_of(body))
    assert refused.value.errors[0][0] == pointer
