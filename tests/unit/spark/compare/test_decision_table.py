"""The classifier over all facts, against rules written by hand from the table of findings."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from spark.compare.decision_table import Content, Decision, Facts, Held, Listed, classify
from spark.findings.finding_class import Cause, Kind
from spark.findings.finding_rules import RULES

EVERY = [
    Facts(
        decision=decision,
        judged=judged,
        listed=listed,
        copies=copies,
        ahead=ahead,
        content=content,
        held=held,
        forgotten=forgotten,
        retired=retired,
        verifiable=verifiable,
    )
    for decision, judged, listed, copies, ahead, content, held, forgotten, retired, verifiable in (
        product(
            Decision,
            (True, False),
            Listed,
            range(4),
            range(2),
            Content,
            Held,
            (True, False),
            (True, False),
            (True, False),
        )
    )
]


def kinds(facts: Facts) -> set[Kind]:
    """Return the kinds of what is found."""
    return {RULES[each].kind for each in classify(facts)}


def test_every_combination_has_an_answer_of_at_most_two_kinds() -> None:
    assert all(len(kinds(facts)) == len(classify(facts)) <= 2 for facts in EVERY)


def test_only_a_judged_commit_without_any_record_is_missing() -> None:
    for facts in EVERY:
        if Kind.MISSING in kinds(facts):
            assert facts.decision is Decision.COMMIT
            assert facts.judged
            assert facts.verifiable
            assert (facts.copies, facts.ahead) == (0, 0)


def test_only_a_record_without_a_commit_is_unexpected() -> None:
    for facts in EVERY:
        found = Kind.UNEXPECTED in kinds(facts)
        record = facts.copies + facts.ahead > 0
        excused = facts.decision is Decision.ABSENT and facts.retired and not facts.forgotten
        assert found == (record and facts.decision is not Decision.COMMIT and not excused)


def test_only_several_judged_records_of_a_commit_are_duplicates() -> None:
    for facts in EVERY:
        expected = facts.decision is Decision.COMMIT and facts.copies > 1
        assert (Kind.DUPLICATE in kinds(facts)) == expected


def test_only_other_content_of_a_committed_record_is_a_mismatch() -> None:
    for facts in EVERY:
        record = facts.decision is Decision.COMMIT and facts.copies + facts.ahead > 0
        assert (Kind.MISMATCH in kinds(facts)) == (record and facts.content is not Content.SAME)


@pytest.mark.parametrize(
    ("listed", "held", "expected"),
    [
        (Listed.PUBLISHED, Held.NEVER, (Cause.LOST_PUBLISHED,)),
        (Listed.PUBLISHED_BEFORE, Held.NEVER, (Cause.LOST_PUBLISHED,)),
        (Listed.NOWHERE, Held.NEVER, (Cause.LOST_SKIPPED,)),
        (Listed.HELD, Held.OPEN, (Cause.UNPUBLISHED_HELD,)),
        (Listed.HELD, Held.DROPPED, (Cause.UNPUBLISHED_GIVEN_UP,)),
        (Listed.HELD, Held.RELEASED, ()),
        (Listed.HELD, Held.NEVER, (Cause.LOST_SKIPPED,)),
    ],
)
def test_the_manifests_show_why_a_message_is_missing(
    listed: Listed, held: Held, expected: tuple[Cause, ...]
) -> None:
    facts = Facts(decision=Decision.COMMIT, judged=True, listed=listed, held=held)
    assert classify(facts) == expected


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (Held.NEVER, (Cause.LOST_PUBLISHED,)),
        (Held.OPEN, (Cause.UNPUBLISHED_HELD,)),
        (Held.DROPPED, (Cause.UNPUBLISHED_GIVEN_UP,)),
        (Held.RELEASED, ()),
    ],
)
def test_without_manifests_the_relays_position_shows_why_a_message_is_missing(
    held: Held, expected: tuple[Cause, ...]
) -> None:
    facts = Facts(decision=Decision.COMMIT, judged=True, unlisted=True, held=held)
    assert classify(facts) == expected
    assert classify(replace(facts, judged=False)) == ()


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (Facts(decision=Decision.ROLLBACK, copies=1), Cause.ORPHAN_ROLLED_BACK),
        (Facts(decision=Decision.NONE, ahead=1), Cause.ORPHAN_UNDECIDED),
        (Facts(decision=Decision.ABSENT, copies=1), Cause.ORPHAN_UNKNOWN),
        (Facts(decision=Decision.ABSENT, copies=1, forgotten=True), Cause.ORPHAN_FORGOTTEN),
    ],
)
def test_the_snapshot_shows_why_a_record_is_unexpected(facts: Facts, expected: Cause) -> None:
    assert classify(facts) == (expected,)


def test_a_record_that_was_written_again_is_a_duplicate_though_the_first_has_expired() -> None:
    facts = Facts(decision=Decision.COMMIT, judged=True, copies=1, again=True)
    assert classify(facts) == (Cause.DUPLICATE_REPEATED,)
    assert classify(replace(facts, again=False)) == ()


@pytest.mark.parametrize(
    ("copies", "redriven", "expected"),
    [
        (1, 1, ()),
        (2, 1, (Cause.DUPLICATE_REDRIVEN,)),
        (2, 2, (Cause.DUPLICATE_REDRIVEN,)),
        (3, 1, (Cause.DUPLICATE_REPEATED,)),
    ],
)
def test_a_repair_explains_as_many_records_as_it_published(
    copies: int, redriven: int, expected: tuple[Cause, ...]
) -> None:
    facts = Facts(decision=Decision.COMMIT, judged=True, copies=copies, redriven=redriven)
    assert classify(facts) == expected
