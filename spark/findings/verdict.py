"""The verdict of a run and the exit code of the process. Pure.

``clean`` means that the whole plan was read and judged, and that no finding above info is open.
Partial coverage is never clean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from outbox.errors import ConfigurationError
from spark.findings.finding_class import FindingClass, GradedClass, Kind, Severity
from spark.findings.finding_rules import RULES

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 7
EXIT_INCONCLUSIVE: Final = 8


class Verdict(StrEnum):
    """The result of a run."""

    CLEAN = "clean"
    FINDINGS = "findings"
    INCONCLUSIVE = "inconclusive"


def verdict_of(found: Collection[GradedClass]) -> Verdict:
    """Return the verdict from the classes and severities of all open findings.

    A part of the plan that was not judged is an open finding of a class that is ``partial``.
    """
    whole = [each for each in found if not RULES[each.finding_class].partial]
    if any(each.severity > Severity.INFO for each in whole):
        return Verdict.FINDINGS
    if len(whole) < len(found):
        return Verdict.INCONCLUSIVE
    return Verdict.CLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The tolerated findings: those below ``fail_on``, and at most ``most`` per kind or class.

    The number of a class goes before that of its kind.
    """

    fail_on: Severity = Severity.LOW
    most: Mapping[str, int] = field(default_factory=dict)

    def passes(self, counts: Mapping[GradedClass, int]) -> bool:
        """Return whether all of these findings are tolerated."""
        of_class, of_kind = Counter[FindingClass](), Counter[Kind]()
        for each, n in counts.items():
            if n and self.fail_on <= each.severity > Severity.INFO:
                of_class[each.finding_class] += n
                of_kind[RULES[each.finding_class].kind] += n
        judged = {each: n for each, n in of_class.items() if not RULES[each].partial}
        return all(
            n <= self.most[each] if each in self.most else self._within(RULES[each].kind, of_kind)
            for each, n in judged.items()
        )

    def _within(self, kind: Kind, found: Mapping[Kind, int]) -> bool:
        return kind in self.most and found[kind] <= self.most[kind]


def limits(text: str) -> dict[str, int]:
    """Read ``name=count`` pairs, comma separated; raises ValueError for anything else."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(name.strip() and count.strip().isdecimal() for name, _, count in pairs):
        raise ValueError("is not NAME=COUNT, comma separated")
    return {name.strip(): int(count) for name, _, count in pairs}


def parse_tolerance(fail_on: str, most: Mapping[str, int]) -> Tolerance:
    """Return the tolerance. Raises ConfigurationError for an unknown kind or class."""
    known = {*(each.value for each in Kind), *(each.value for each in FindingClass)}
    unknown = sorted(set(most) - known)
    if unknown:
        kinds = ", ".join(Kind)
        raise ConfigurationError(
            f"--max: {unknown[0]!r} is not a kind or class: kinds are {kinds};"
            " docs/reference/findings.md lists the classes"
        )
    return Tolerance(fail_on=Severity[fail_on.upper()], most=dict(most))


def exit_code(counts: Mapping[GradedClass, int], tolerance: Tolerance) -> int:
    """Return 0 if clean or tolerated, 7 for findings, 8 if not everything was read."""
    present = {each for each, n in counts.items() if n}
    if verdict_of(present) is Verdict.FINDINGS and not tolerance.passes(counts):
        return EXIT_FINDINGS
    if any(RULES[each.finding_class].partial for each in present):
        return EXIT_INCONCLUSIVE
    return EXIT_CLEAN
