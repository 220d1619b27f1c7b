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
from spark.findings.finding_class import Cause, GradedCause, Kind, Severity, causes_named
from spark.findings.finding_rules import RULES

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 7
EXIT_INCONCLUSIVE: Final = 8


class Verdict(StrEnum):
    """The result of a run."""

    CLEAN = "clean"
    FINDINGS = "findings"
    INCONCLUSIVE = "inconclusive"


def verdict_of(found: Collection[GradedCause]) -> Verdict:
    """Return the verdict from the causes and severities of all open findings.

    A part of the plan that was not judged is an open finding of a cause that is ``partial``.
    """
    whole = [each for each in found if not RULES[each.cause].partial]
    if any(each.severity > Severity.INFO for each in whole):
        return Verdict.FINDINGS
    if len(whole) < len(found):
        return Verdict.INCONCLUSIVE
    return Verdict.CLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The tolerated findings: those below ``fail_on``, and at most ``most`` of each of its names.

    A cause is judged by the most special of its names: CLASS/detail, CLASS, or its kind.
    """

    fail_on: Severity = Severity.LOW
    most: Mapping[str, int] = field(default_factory=dict)

    def passes(self, counts: Mapping[GradedCause, int]) -> bool:
        """Return whether all of these findings are tolerated."""
        found, judged = Counter[str](), set[Cause]()
        for (cause, severity), n in counts.items():
            if self.fail_on <= severity > Severity.INFO:
                judged.add(cause)
                found.update(dict.fromkeys(_names_of(cause), n))
        return all(RULES[each].partial or self._tolerates(each, found) for each in judged)

    def _tolerates(self, cause: Cause, found: Mapping[str, int]) -> bool:
        limited = next((name for name in _names_of(cause) if name in self.most), None)
        return limited is not None and found[limited] <= self.most[limited]


def _names_of(cause: Cause) -> tuple[str, ...]:
    return cause.value, cause.finding_class.value, RULES[cause].kind.value


def limits(text: str) -> dict[str, int]:
    """Read ``name=count`` pairs, comma separated; raises ValueError for anything else."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(name.strip() and count.strip().isdecimal() for name, _, count in pairs):
        raise ValueError("is not NAME=COUNT, comma separated")
    return {name.strip(): int(count) for name, _, count in pairs}


def parse_tolerance(fail_on: str, most: Mapping[str, int]) -> Tolerance:
    """Return the tolerance. Raises ConfigurationError for an unknown kind or class."""
    unknown = sorted(name for name in set(most) - set(Kind) if not causes_named(name))
    if unknown:
        kinds = ", ".join(Kind)
        raise ConfigurationError(
            f"--max: {unknown[0]!r} is not a kind or class: kinds are {kinds};"
            " docs/reference/findings.md lists the classes"
        )
    return Tolerance(fail_on=Severity[fail_on.upper()], most=dict(most))


def exit_code(counts: Mapping[GradedCause, int], tolerance: Tolerance) -> int:
    """Return 0 if clean or tolerated, 7 for findings, 8 if not everything was read."""
    if verdict_of(counts.keys()) is Verdict.FINDINGS and not tolerance.passes(counts):
        return EXIT_FINDINGS
    if any(RULES[each.cause].partial for each in counts):
        return EXIT_INCONCLUSIVE
    return EXIT_CLEAN
