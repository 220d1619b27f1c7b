"""The verdict of a run and what the process exits with. Pure.

``clean`` means that the whole plan was read, all of it was judged, and nothing is open; partial
coverage is never clean.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from spark.finding_classes import RULES, FindingClass, Severity

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 7
EXIT_INCONCLUSIVE: Final = 8


class Verdict(StrEnum):
    """The answer of a run."""

    CLEAN = "clean"
    FINDINGS = "findings"
    INCONCLUSIVE = "inconclusive"


def verdict_of(classes: Collection[FindingClass]) -> Verdict:
    """Return the verdict over the classes of all open findings."""
    if any(not RULES[each].partial and RULES[each].severity > Severity.INFO for each in classes):
        return Verdict.FINDINGS
    if any(RULES[each].partial for each in classes):
        return Verdict.INCONCLUSIVE
    return Verdict.CLEAN


def exit_code(verdict: Verdict, worst: Severity | None, fail_on: Severity) -> int:
    """Return 0 clean or below ``fail_on``, 7 findings, 8 inconclusive."""
    if verdict is Verdict.INCONCLUSIVE:
        return EXIT_INCONCLUSIVE
    if verdict is Verdict.CLEAN or worst is None or worst < fail_on:
        return EXIT_CLEAN
    return EXIT_FINDINGS
