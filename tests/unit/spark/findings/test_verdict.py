from __future__ import annotations

import pytest

from outbox.errors import ConfigurationError
from outbox.reconciliation.finding import PERMANENT_CAUSES, REPAIRABLE_CAUSES, UNREAD_CAUSES
from spark.findings.finding_class import Cause, GradedCause, Severity
from spark.findings.finding_rules import RULES
from spark.findings.verdict import Tolerance, Verdict, exit_code, parse_tolerance, verdict_of

LOST, HELD, NOT_READ = Cause.LOST_PUBLISHED, Cause.UNPUBLISHED_HELD, Cause.UNVERIFIABLE_NOT_READ
DUPLICATE = Cause.DUPLICATE_REPEATED


def graded(cause: Cause) -> GradedCause:
    """Return the cause with its own severity."""
    return GradedCause(cause, RULES[cause].severity)


@pytest.mark.parametrize(
    ("causes", "verdict"),
    [
        ((), Verdict.CLEAN),
        ((Cause.UNVERIFIABLE_OPEN_TRANSACTION, Cause.UNPUBLISHED_GIVEN_UP), Verdict.INCONCLUSIVE),
        ((NOT_READ, LOST), Verdict.FINDINGS),
        ((Cause.UNVERIFIABLE_EXPIRED, Cause.LOG_CHANGED_PARTITIONS), Verdict.FINDINGS),
    ],
)
def test_partial_coverage_is_never_clean(causes: tuple[Cause, ...], verdict: Verdict) -> None:
    assert verdict_of([graded(each) for each in causes]) is verdict


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_alone_gives_its_verdict_and_exit_code(cause: Cause) -> None:
    rule = RULES[cause]
    expected = (Verdict.FINDINGS, 7) if rule.severity > Severity.INFO else (Verdict.CLEAN, 0)
    expected = (Verdict.INCONCLUSIVE, 8) if rule.partial else expected
    found = graded(cause)
    assert (verdict_of({found}), exit_code({found: 1}, Tolerance())) == expected


@pytest.mark.parametrize(
    ("counts", "fail_on", "most", "code"),
    [
        ({}, "low", {}, 0),
        ({Cause.UNPUBLISHED_GIVEN_UP: 3}, "info", {}, 0),
        ({HELD: 1}, "high", {}, 0),
        ({LOST: 1}, "critical", {}, 7),
        ({NOT_READ: 1}, "critical", {}, 8),
        ({NOT_READ: 1, LOST: 1}, "low", {}, 7),
        ({DUPLICATE: 10}, "low", {"duplicate": 10}, 0),
        ({DUPLICATE: 11}, "low", {"duplicate": 10}, 7),
        ({LOST: 1, HELD: 1}, "low", {"missing": 1}, 7),
        ({LOST: 1}, "low", {"LOST/published": 0, "LOST": 1, "missing": 10}, 7),
        ({NOT_READ: 1}, "low", {"UNVERIFIABLE/not_read": 5, "coverage": 5}, 8),
    ],
)
def test_the_exit_code_follows_from_the_findings_and_the_tolerance(
    counts: dict[Cause, int], fail_on: str, most: dict[str, int], code: int
) -> None:
    given = {graded(each): n for each, n in counts.items()}
    assert exit_code(given, parse_tolerance(fail_on, most)) == code


def test_a_threshold_for_an_unknown_kind_or_class_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'misses' is not a kind or class"):
        parse_tolerance("low", {"misses": 1})


def test_what_the_library_names_is_a_cause() -> None:
    assert {*UNREAD_CAUSES, *PERMANENT_CAUSES, *REPAIRABLE_CAUSES} <= set(Cause)
    assert not {*UNREAD_CAUSES} & {*PERMANENT_CAUSES}
