"""The verdict of a run and what the process exits with. Pure.

``clean`` means that the whole plan was read, all of it was judged, and nothing is open; partial
coverage is never clean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from outbox.errors import ConfigurationError
from spark.findings.finding_class import RULES, FindingClass, Graded, Kind, Severity

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 7
EXIT_INCONCLUSIVE: Final = 8


class Verdict(StrEnum):
    """The answer of a run."""

    CLEAN = "clean"
    FINDINGS = "findings"
    INCONCLUSIVE = "inconclusive"


def verdict_of(found: Collection[Graded]) -> Verdict:
    """Return the verdict over the classes of all open findings and how bad they are.

    Whatever was not judged of the plan is itself an open finding of a class that is ``partial``.
    """
    whole = [each for each in found if not RULES[each.finding_class].partial]
    if any(each.severity > Severity.INFO for each in whole):
        return Verdict.FINDINGS
    if len(whole) < len(found):
        return Verdict.INCONCLUSIVE
    return Verdict.CLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """What is let pass: findings below ``fail_on``, and so many ``most`` of a kind or class."""

    fail_on: Severity = Severity.LOW
    most: Mapping[str, int] = field(default_factory=dict)

    def passes(self, counts: Mapping[Graded, int]) -> bool:
        """Tell whether all of these findings are tolerated."""
        of_class, of_kind = Counter[FindingClass](), Counter[Kind]()
        for each, n in counts.items():
            if n and self.fail_on <= each.severity > Severity.INFO:
                of_class[each.finding_class] += n
                of_kind[RULES[each.finding_class].kind] += n
        return all(
            self._within(each, n) or self._within(RULES[each].kind, of_kind[RULES[each].kind])
            for each, n in of_class.items()
            if not RULES[each].partial
        )

    def _within(self, name: str, found: int) -> bool:
        return name in self.most and found <= self.most[name]


def tolerance_of(fail_on: str, most: Mapping[str, int]) -> Tolerance:
    """Read what is tolerated. Raises ConfigurationError naming what is no kind and no class."""
    known = {*(each.value for each in Kind), *(each.value for each in FindingClass)}
    unknown = sorted(set(most) - known)
    if unknown:
        raise ConfigurationError(f"OUTBOX_RECONCILE_MAX: {unknown[0]!r} is no kind or class")
    return Tolerance(fail_on=Severity[fail_on.upper()], most=dict(most))


def exit_code(counts: Mapping[Graded, int], tolerance: Tolerance) -> int:
    """Return 0 clean or tolerated, 7 findings, else 8 when not all was read."""
    present = {each for each, n in counts.items() if n}
    if verdict_of(present) is Verdict.FINDINGS and not tolerance.passes(counts):
        return EXIT_FINDINGS
    if any(RULES[each.finding_class].partial for each in present):
        return EXIT_INCONCLUSIVE
    return EXIT_CLEAN
