from __future__ import annotations

from pathlib import Path

import pytest

from outbox.errors import ConfigurationError
from outbox.reconciliation.finding import PERMANENT_CLASSES, UNREAD_CLASSES
from spark.findings.finding_class import FindingClass, GradedClass, Severity
from spark.findings.finding_rules import RULES
from spark.findings.ledger import Ledger
from spark.findings.verdict import Tolerance, Verdict, exit_code, parse_tolerance, verdict_of
from tests.unit.spark.fixtures_reports import make_finding

LOST, HELD, NOT_READ = FindingClass.LOST, FindingClass.HELD, FindingClass.NOT_READ
DUPLICATE = FindingClass.DUPLICATE


def graded(finding_class: FindingClass) -> GradedClass:
    """Return the class with its own severity."""
    return GradedClass(finding_class, RULES[finding_class].severity)


@pytest.mark.parametrize(
    ("classes", "verdict"),
    [
        ((), Verdict.CLEAN),
        ((FindingClass.GIVEN_UP,), Verdict.CLEAN),
        ((NOT_READ,), Verdict.INCONCLUSIVE),
        ((FindingClass.LSO_STUCK, FindingClass.GIVEN_UP), Verdict.INCONCLUSIVE),
        ((HELD,), Verdict.FINDINGS),
        ((NOT_READ, LOST), Verdict.FINDINGS),
        ((FindingClass.TOPIC_RECREATED, FindingClass.PARKED), Verdict.INCONCLUSIVE),
        ((FindingClass.RETENTION_GAP, FindingClass.PARTITIONS_CHANGED), Verdict.FINDINGS),
        ((FindingClass.COMPACTED, FindingClass.PARKED), Verdict.CLEAN),
    ],
)
def test_partial_coverage_is_never_clean(
    classes: tuple[FindingClass, ...], verdict: Verdict
) -> None:
    assert verdict_of([graded(each) for each in classes]) is verdict


@pytest.mark.parametrize("finding_class", FindingClass)
def test_every_class_alone_gives_its_verdict_and_exit_code(finding_class: FindingClass) -> None:
    rule = RULES[finding_class]
    expected = (Verdict.FINDINGS, 7) if rule.severity > Severity.INFO else (Verdict.CLEAN, 0)
    expected = (Verdict.INCONCLUSIVE, 8) if rule.partial else expected
    found = graded(finding_class)
    assert (verdict_of({found}), exit_code({found: 1}, Tolerance())) == expected


@pytest.mark.parametrize(
    ("counts", "fail_on", "most", "code"),
    [
        ({}, "low", {}, 0),
        ({FindingClass.GIVEN_UP: 3}, "low", {}, 0),
        ({FindingClass.GIVEN_UP: 3}, "info", {}, 0),
        ({HELD: 1}, "low", {}, 7),
        ({HELD: 1}, "high", {}, 0),
        ({LOST: 1}, "critical", {}, 7),
        ({LOST: 1, HELD: 1}, "high", {}, 7),
        ({NOT_READ: 1}, "critical", {}, 8),
        ({NOT_READ: 1, LOST: 1}, "low", {}, 7),
        ({NOT_READ: 1, HELD: 1}, "critical", {}, 8),
        ({DUPLICATE: 10}, "low", {"duplicate": 10}, 0),
        ({DUPLICATE: 11}, "low", {"duplicate": 10}, 7),
        ({DUPLICATE: 10, LOST: 1}, "low", {"duplicate": 10}, 7),
        ({LOST: 1, HELD: 1}, "low", {"missing": 1}, 7),
        ({LOST: 1, HELD: 1}, "high", {"missing": 1}, 0),
        ({HELD: 4}, "low", {"HELD": 4, "missing": 0}, 0),
        ({LOST: 1}, "low", {"LOST": 0, "missing": 10}, 7),
        ({HELD: 3, LOST: 1}, "low", {"LOST": 0, "missing": 10}, 7),
        ({NOT_READ: 1}, "low", {"NOT_READ": 5, "coverage": 5}, 8),
    ],
)
def test_the_exit_code_follows_from_the_findings_and_the_tolerance(
    counts: dict[FindingClass, int], fail_on: str, most: dict[str, int], code: int
) -> None:
    given = {graded(each): n for each, n in counts.items()}
    assert exit_code(given, parse_tolerance(fail_on, most)) == code


def test_the_severity_of_the_topic_decides_and_not_that_of_the_class() -> None:
    mild, grave = (
        GradedClass(LOST, Severity.INFO),
        GradedClass(FindingClass.GIVEN_UP, Severity.HIGH),
    )
    assert verdict_of({mild}) is Verdict.CLEAN
    assert (exit_code({mild: 1}, Tolerance()), exit_code({grave: 1}, Tolerance())) == (0, 7)
    both = {mild: 2, graded(LOST): 1}
    assert exit_code(both, parse_tolerance("low", {"LOST": 1})) == 0
    assert (
        exit_code(
            {GradedClass(LOST, Severity.LOW): 1, graded(LOST): 1},
            parse_tolerance("low", {"LOST": 1}),
        )
        == 7
    )
    unread = GradedClass(NOT_READ, Severity.INFO)
    assert (verdict_of({unread}), exit_code({unread: 1}, Tolerance())) == (Verdict.INCONCLUSIVE, 8)


def test_a_threshold_for_an_unknown_kind_or_class_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'misses' is not a kind or class"):
        parse_tolerance("low", {"misses": 1})


@pytest.mark.parametrize("finding_class", FindingClass)
def test_every_finding_can_be_accepted_except_what_was_not_read(
    finding_class: FindingClass,
) -> None:
    finding = make_finding(finding_class=finding_class)
    ids = frozenset({finding.finding_id})
    ledger = Ledger(run_id="", folder=Path(), accepted_ids=ids)
    unread = finding_class.value in UNREAD_CLASSES
    assert ledger.accepts(finding) != unread
    gap = finding_class is FindingClass.RETENTION_GAP
    assert RULES[finding_class].partial == (unread or gap)
    assert not ledger.accepts(make_finding(1))


def test_what_is_partial_or_permanent_is_a_class() -> None:
    assert {*UNREAD_CLASSES, *PERMANENT_CLASSES} <= {each.value for each in FindingClass}
    assert not UNREAD_CLASSES & PERMANENT_CLASSES
