from __future__ import annotations

import pytest

from outbox.errors import ConfigurationError
from outbox.reconciliation.finding import PERMANENT_CLASSES, UNREAD_CLASSES
from spark.findings.finding_class import FindingClass, GradedClass, Severity
from spark.findings.finding_rules import RULES
from spark.findings.verdict import Tolerance, Verdict, exit_code, parse_tolerance, verdict_of

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
        ((FindingClass.NOT_READ, FindingClass.COMPACTED), Verdict.INCONCLUSIVE),
        ((FindingClass.RETENTION_GAP, FindingClass.PARTITIONS_CHANGED), Verdict.FINDINGS),
        ((FindingClass.COMPACTED, FindingClass.GIVEN_UP), Verdict.CLEAN),
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
        ({FindingClass.GIVEN_UP: 3}, "info", {}, 0),
        ({HELD: 1}, "low", {}, 7),
        ({HELD: 1}, "high", {}, 0),
        ({LOST: 1}, "critical", {}, 7),
        ({NOT_READ: 1}, "critical", {}, 8),
        ({NOT_READ: 1, LOST: 1}, "low", {}, 7),
        ({DUPLICATE: 10}, "low", {"duplicate": 10}, 0),
        ({DUPLICATE: 11}, "low", {"duplicate": 10}, 7),
        ({LOST: 1, HELD: 1}, "low", {"missing": 1}, 7),
        ({LOST: 1}, "low", {"LOST": 0, "missing": 10}, 7),
        ({NOT_READ: 1}, "low", {"NOT_READ": 5, "coverage": 5}, 8),
    ],
)
def test_the_exit_code_follows_from_the_findings_and_the_tolerance(
    counts: dict[FindingClass, int], fail_on: str, most: dict[str, int], code: int
) -> None:
    given = {graded(each): n for each, n in counts.items()}
    assert exit_code(given, parse_tolerance(fail_on, most)) == code


def test_a_threshold_for_an_unknown_kind_or_class_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'misses' is not a kind or class"):
        parse_tolerance("low", {"misses": 1})


def test_what_is_partial_or_permanent_is_a_class() -> None:
    assert {*UNREAD_CLASSES, *PERMANENT_CLASSES} <= {each.value for each in FindingClass}
    assert not UNREAD_CLASSES & PERMANENT_CLASSES
