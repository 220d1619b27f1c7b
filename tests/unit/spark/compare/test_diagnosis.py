"""From what is known of a half id to its findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from outbox.messages.manifest import Position
from outbox.messages.message import DecidedBy, Resolution
from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.reconciliation.log import Partition
from outbox.reconciliation.snapshot import RecordedPlace
from spark.compare.decision_table import Content
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.expiry import EarlierRuns
from spark.compare.facts import Unverifiable, is_unverifiable, unverifiable_reason
from spark.compare.field_diff import compare
from spark.cut.checkpoint import Previous
from spark.cut.cut_plan import ShardCut
from spark.findings.finding_class import Cause
from tests.fixtures_records import render
from tests.unit.spark.fixtures_suspects import (
    COMMITTED,
    HALF,
    HERE,
    NOON,
    P_LISTED,
    causes,
    make_copy,
    make_hold,
    make_suspect,
    placed_at,
    read,
)


def test_a_record_that_expired_with_the_log_is_not_lost() -> None:
    later = replace(HERE, starts={Partition("points", 0): 6})
    place = RecordedPlace(partition=0, offset=5, batch_no=1)
    assert causes(make_suspect(place=place), later) == []
    assert causes(make_suspect(place=replace(place, offset=6)), later) == [Cause.LOST_PUBLISHED]
    assert causes(make_suspect(), later) == []


def test_nothing_of_a_topic_that_was_not_read_is_lost() -> None:
    unread = replace(HERE, unread_topics=frozenset({"points"}))
    assert causes(make_suspect(), unread) == []
    assert is_unverifiable(make_suspect(), unread)
    assert not is_unverifiable(make_suspect(), HERE)
    assert not is_unverifiable(make_suspect(make_copy(), make_copy()), unread)


@pytest.mark.parametrize(
    ("released", "dropped", "expected"),
    [
        (False, False, [Cause.UNPUBLISHED_HELD]),
        (False, True, [Cause.UNPUBLISHED_GIVEN_UP]),
        (True, False, []),
    ],
)
def test_a_held_message_is_named_by_what_became_of_it(
    released: bool, dropped: bool, expected: list[Cause]
) -> None:
    hold = make_hold(released=released, dropped=dropped)
    listed = ({"status": "K"},)
    assert causes(make_suspect(hold=hold, listed=listed)) == expected


@pytest.mark.parametrize(
    ("place", "unlisted", "expected"),
    [
        ((0, 8), {3}, [Cause.LOST_PUBLISHED]),
        ((0, 9), {3}, []),
        ((0, 4), {3}, []),
        ((1, 8), {3}, []),
        ((None, None), {3}, []),
        ((0, 8), set(), []),
    ],
)
def test_without_manifests_a_release_is_lost_if_its_place_was_read(
    place: tuple[int | None, int | None], unlisted: set[int], expected: list[Cause]
) -> None:
    hold = make_hold(released=True, released_partition=place[0], released_offset=place[1])
    first = Partition("points", 0)
    missed_before = replace(
        HERE,
        starts={first: 5},
        ends={first: 9},
        unlisted_shards=frozenset(unlisted),
        earlier=EarlierRuns(missing=frozenset({HALF.half_id})),
    )
    suspect = make_suspect(hold=hold, listed=({"status": "K"},))
    assert causes(suspect, missed_before) == expected


@pytest.mark.parametrize(
    ("batch_no", "expected"),
    [(7, [Cause.LOST_PUBLISHED]), (8, []), (None, [])],
)
def test_a_release_is_lost_if_its_batch_was_read_and_does_not_list_it(
    batch_no: int | None, expected: list[Cause]
) -> None:
    hold = make_hold(released=True, release_batch_no=batch_no)
    suspect = make_suspect(hold=hold, listed=({"status": "K"},))
    assert causes(suspect, replace(HERE, batches={3: 7})) == expected


def test_a_message_that_was_held_and_then_published_counts_as_published() -> None:
    assert causes(make_suspect(listed=({"status": "K"}, *P_LISTED))) == [Cause.LOST_PUBLISHED]


def test_the_record_of_equal_content_represents_the_message() -> None:
    other = make_copy(offset=1, digest=78)
    assert causes(make_suspect(other, make_copy())) == [Cause.DUPLICATE_REPEATED]


def test_a_record_of_a_rolled_back_message_is_found_once_a_record() -> None:
    rolled_back = replace(COMMITTED, decision=Resolution.ROLLBACK)
    suspect = make_suspect(
        make_copy(), make_copy(offset=6, ahead=True), standing=None, known=rolled_back
    )
    assert causes(suspect) == [Cause.ORPHAN_ROLLED_BACK] * 2


def test_an_id_below_what_is_kept_is_not_unknown() -> None:
    suspect = make_suspect(make_copy(), standing=None, known=None, digest=None)
    assert causes(suspect) == [Cause.ORPHAN_UNKNOWN]
    assert causes(suspect, replace(HERE, retired_below=HalfId(10 << 15))) == []
    assert causes(suspect, replace(HERE, retired_leaves=frozenset({0}))) == []


def test_a_record_with_other_random_bits_is_a_stranger_and_no_copy() -> None:
    other = str(message_id_of(HALF.half_id, Nonce(43)))
    stranger = make_copy(message_id=other, digest=78, offset=6)
    (finding,) = findings_of_suspect(make_suspect(make_copy(), stranger), HERE)
    assert (finding.cause, finding.message_id) == (Cause.ORPHAN_UNKNOWN, other)
    lost = make_suspect(stranger)
    assert causes(lost) == [Cause.LOST_PUBLISHED, Cause.ORPHAN_UNKNOWN]


def test_a_stranger_that_recovery_had_found_is_a_regression() -> None:
    other = str(message_id_of(HALF.half_id, Nonce(43)))
    stranger = make_copy(message_id=other, digest=78, offset=6)
    suspect = make_suspect(make_copy(), stranger, forgotten=frozenset({other}))
    assert causes(suspect) == [Cause.ORPHAN_FORGOTTEN]


@pytest.mark.parametrize(
    ("changes", "content"),
    [
        ({"topic": "other", "value": b""}, Content.TOPIC),
        ({"value": None, "key": b""}, Content.VALUE),
        ({"key": None}, Content.KEY),
        ({"headers": ()}, Content.HEADER),
        ({}, Content.VALUE),
    ],
)
def test_the_worst_difference_names_a_mismatch(changes: dict[str, Any], content: Content) -> None:
    assert compare(HALF, read(**changes)).content is content


def test_a_header_out_of_its_order_is_a_difference() -> None:
    headers = render(HALF, DecidedBy.CHECK, "3.1.0").headers
    swapped = read(headers=(*headers[:3], headers[4], headers[3]))
    assert compare(HALF, swapped).evidence == {"header": ["the order of the headers"]}


def test_the_name_of_a_hostile_header_is_escaped() -> None:
    headers = (*render(HALF, DecidedBy.CHECK, "3.1.0").headers, ("a\x00b", b""))
    assert compare(HALF, read(headers=headers)).evidence == {"header": ["a\\x00b"]}


def test_null_and_empty_values_differ_and_no_byte_is_shown() -> None:
    evidence = compare(HALF, read(value=None)).evidence["value"]
    assert evidence["actual"] is None
    assert set(evidence["expected"]) == {"bytes", "sha256"}


def test_an_unknown_message_is_named_by_its_record() -> None:
    suspect = make_suspect(make_copy(), standing=None, known=None, digest=None)
    (finding,) = findings_of_suspect(suspect, HERE)
    assert UUID(str(finding.message_id)) == HALF.message_id
    assert (finding.topic, finding.partition, finding.offset) == ("points", 0, 5)


def test_a_record_is_written_again_only_of_a_message_that_an_earlier_run_has_not_missed() -> None:
    cut = ShardCut(shard=3, batch_no=7, position=Position(9, 1))
    before = Previous(
        run_id="", cut_at=NOON, horizon=1, manifest_ends={}, marks={}, shards={3: cut}
    )
    late = make_suspect(make_copy(again=True))
    seen = replace(HERE, earlier=EarlierRuns(previous=before))
    missed = EarlierRuns(previous=before, missing=frozenset({HALF.half_id}))
    assert causes(late, seen) == [Cause.DUPLICATE_REPEATED]
    assert causes(late, replace(HERE, earlier=missed)) == []


@pytest.mark.parametrize(
    "retired",
    [{"retired_below": HalfId(10 << 15)}, {"retired_leaves": frozenset({0})}],
)
def test_a_missing_message_whose_half_was_retired_is_unverifiable_and_never_lost_anew(
    retired: dict[str, Any],
) -> None:
    """Nobody knows its topic any more, so neither log nor operator can settle it."""
    forgotten, here = make_suspect(known=None), replace(HERE, **retired)
    assert unverifiable_reason(forgotten, here) is Unverifiable.RETIRED
    assert causes(forgotten, here) == []
    assert causes(make_suspect(known=None)) == [Cause.LOST_PUBLISHED]
    skipped = make_suspect(known=None, listed=())
    assert causes(skipped, here) == [Cause.LOST_SKIPPED]
    missing = EarlierRuns(missing=frozenset({HALF.half_id}))
    assert causes(skipped, replace(here, earlier=missing)) == []


def test_a_finding_keeps_its_id_when_its_half_is_retired() -> None:
    twice = (make_copy(), make_copy(offset=6))
    (before,) = findings_of_suspect(make_suspect(*twice), HERE)
    (listed,) = findings_of_suspect(make_suspect(*twice, known=None), HERE)
    (named,) = findings_of_suspect(make_suspect(*twice, known=None, listed=()), HERE)
    assert before.finding_id == listed.finding_id == named.finding_id


def test_a_second_record_at_an_offset_that_is_in_no_batch_is_another_writers() -> None:
    """The relay recorded a place; a copy of its batch elsewhere, or of no batch, is not its own."""
    own, forged = make_copy(), make_copy(offset=9)
    for copy, place, expected in (
        (forged, placed_at(5), True),
        (make_copy(offset=9, batch_no=None), None, True),
        (make_copy(offset=9, batch_no=8), None, True),
        (forged, None, False),
    ):
        (found,) = findings_of_suspect(make_suspect(own, copy, place=place), HERE)
        assert ("Another writer" in found.action) is expected
