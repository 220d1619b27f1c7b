"""Looking again at what an earlier run found: a new run, told by those findings alone. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outbox.reconciliation import FindingStatus
from spark.finding_classes import FindingClass, Graded, Severity
from spark.report import Report, spaced
from spark.verdict import EXIT_CLEAN, EXIT_INCONCLUSIVE, Tolerance, exit_code

OPEN = "open"
UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """What the findings of ``of`` that were open have become in a new run."""

    of: str
    report: Report
    findings: Sequence[FindingStatus]

    @property
    def open(self) -> Mapping[Graded, int]:
        """How many of them are still open, by class and severity."""
        return dict(Counter(map(_graded, (f for f in self.findings if f.status == OPEN))))

    def exit_code(self, tolerance: Tolerance) -> int:
        """Return 7 for what is still open and not tolerated, 8 if nobody can tell, else 0."""
        code = exit_code(self.open, tolerance)
        return code if code != EXIT_CLEAN or self._told else EXIT_INCONCLUSIVE

    @property
    def _told(self) -> bool:
        """All was read, and all that was open could be judged again."""
        return self.report.complete and not any(f.status == UNVERIFIABLE for f in self.findings)

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "run_id": self.report.run_id,
            "rerun_of": self.of,
            "open": sum(self.open.values()),
            "findings": [
                {"finding_id": f.finding_id, "class": f.finding_class, "status": f.status}
                for f in self.findings
            ],
        }

    def lines(self) -> str:
        """Return what a person reads on a terminal."""
        told = "".join(
            f"{f.status:<12} {f.finding_class:<18} {f.finding_id}\n" for f in self.findings
        )
        still = sum(self.open.values())
        return (
            f"{told}{spaced(still)} of {spaced(len(self.findings))} findings of {self.of} are open"
            f" in {self.report.run_id}\n"
            f"report: {self.report.folder / 'report.html'}\n"
        )


def _graded(found: FindingStatus) -> Graded:
    return Graded(FindingClass(found.finding_class), Severity[found.severity.upper()])


def became(
    before: Sequence[FindingStatus], after: Mapping[str, FindingStatus]
) -> tuple[FindingStatus, ...]:
    """Return what the findings that were open have become."""
    return tuple(after.get(f.finding_id, f) for f in before if f.status == OPEN)
