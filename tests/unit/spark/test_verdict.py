from __future__ import annotations

import pytest

from spark.finding_classes import FindingClass, Severity
from spark.verdict import Verdict, exit_code, verdict_of

LOST, HELD, NOT_READ = FindingClass.LOST, FindingClass.HELD, FindingClass.NOT_READ


@pytest.mark.parametrize(
    ("classes", "verdict"),
    [
        ((), Verdict.CLEAN),
        ((FindingClass.GIVEN_UP,), Verdict.CLEAN),
        ((NOT_READ,), Verdict.INCONCLUSIVE),
        ((FindingClass.LSO_STUCK, FindingClass.GIVEN_UP), Verdict.INCONCLUSIVE),
        ((HELD,), Verdict.FINDINGS),
        ((NOT_READ, LOST), Verdict.FINDINGS),
    ],
)
def test_partial_coverage_is_never_clean(
    classes: tuple[FindingClass, ...], verdict: Verdict
) -> None:
    assert verdict_of(classes) is verdict


@pytest.mark.parametrize(
    ("verdict", "worst", "fail_on", "code"),
    [
        (Verdict.CLEAN, None, Severity.LOW, 0),
        (Verdict.CLEAN, Severity.INFO, Severity.LOW, 0),
        (Verdict.FINDINGS, Severity.MEDIUM, Severity.LOW, 7),
        (Verdict.FINDINGS, Severity.MEDIUM, Severity.HIGH, 0),
        (Verdict.FINDINGS, Severity.CRITICAL, Severity.CRITICAL, 7),
        (Verdict.INCONCLUSIVE, Severity.HIGH, Severity.CRITICAL, 8),
    ],
)
def test_the_exit_code_follows_from_verdict_and_threshold(
    verdict: Verdict, worst: Severity | None, fail_on: Severity, code: int
) -> None:
    assert exit_code(verdict, worst, fail_on) == code
