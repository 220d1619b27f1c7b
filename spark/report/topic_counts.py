"""What a run counts by topic and by producer group; it must never show a number that is not exact.

A topic or a group that is not known has an empty name: a record of another writer names no group, a
retired message has no row any more, and some findings are about no topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from spark.findings.finding_class import GradedCause, Kind, Place, Severity
from spark.findings.finding_rules import RULES

COLUMNS: Final = ("committed", "records", "missing", "duplicate", "lag")
"""Messages checked, records read, open findings above info, messages above the cut."""


PlaceCounts = Mapping[Place, Mapping[str, int]]


def read_counts(rows: Iterable[dict[str, Any]]) -> PlaceCounts:
    """Return what the run has read; each of the rows names a topic, a producer group and counts."""
    counts: dict[Place, Counter[str]] = {}
    for counted in rows:
        place = Place(counted.pop("topic") or "", counted.pop("producer_group") or "")
        counts.setdefault(place, Counter()).update(counted)
    return counts


def with_findings(read: PlaceCounts, found: Mapping[tuple[GradedCause, Place], int]) -> PlaceCounts:
    """Return the counts with the missing and the duplicate messages among the findings."""
    counts = {place: Counter(each) for place, each in read.items()}
    for (graded, place), n in found.items():
        kind = RULES[graded.cause].kind
        if kind in (Kind.MISSING, Kind.DUPLICATE) and graded.severity > Severity.INFO:
            counts.setdefault(place, Counter())[kind.value] += n
    return counts


def rows_by(counts: PlaceCounts, *by: str) -> list[dict[str, Any]]:
    """Return the sums by these fields of ``Place``, sorted; a name that is not known is null."""
    sums: dict[tuple[str, ...], Counter[str]] = {}
    for place, counted in counts.items():
        names = tuple(getattr(place, each) for each in by)
        sums.setdefault(names, Counter()).update(counted)
    return [
        {
            **{name: text or None for name, text in zip(by, names, strict=True)},
            **{name: counted[name] for name in COLUMNS},
        }
        for names, counted in sorted(sums.items())
    ]
