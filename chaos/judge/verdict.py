"""The verdict on a run, as a file and as text.

PASS: every invariant was checked and holds. VIOLATION: one does not hold. VOID: nothing is proved,
because something could not be checked or the harness itself failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any, Final

from chaos.history.process_ends import ENDED, is_kill
from chaos.judge.coverage import COMMITTED, ORPHAN, RETIRED_LEAF, missing
from chaos.judge.invariants import INVARIANTS, KILLING

if TYPE_CHECKING:
    from chaos.judge.findings import Findings
    from chaos.judge.recorded_calls import RecordedCalls

PASS, VIOLATION, VOID = "PASS", "VIOLATION", "VOID"
NEEDED: Final = tuple(name for name in INVARIANTS if name not in ("I15", "I18"))
"""A run proves nothing if one of these was not checked. I15 needs a leaf that was retired: profiles
with retention must reach that."""
SHOWN_LINES: Final = 50
NAME: Final = "verdict.json"
BACK: Final = "back"
"""The key of the recoveries' quantiles in the file; totals are computed from the samples."""
SPARK_JUDGED: Final = frozenset({"clean", "findings"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on one run; ``recoveries`` are all samples in seconds, by fault."""

    verdict: str
    reasons: list[str] = field(default_factory=list)
    profile: str = ""
    seed: int | None = None
    git: str = ""
    code_version: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    load: Sequence[float] = ()
    """how many processes wanted a core: before and after the faults, and after the backlog"""
    seconds: float = 0.0
    length: float = 0.0
    """the seconds in which faults happened"""
    pace: float = 1.0
    """the share of the profile's random faults"""
    kills: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    messages: int = 0
    excused: int = 0
    invariants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    recoveries: Mapping[str, Sequence[float]] = field(default_factory=dict)
    reached: Mapping[str, int] = field(default_factory=dict)
    """How often the run reached each state."""
    spark: Mapping[str, Any] | None = None
    context: list[str] = field(default_factory=list)
    """Lines of the history about the first violation."""

    @property
    def killed(self) -> int:
        """Number of processes that died by SIGKILL."""
        return sum(self.kills.values())

    @property
    def faulted(self) -> int:
        """Number of faults: kills and all others."""
        others = (count for kind, count in self.faults.items() if kind not in KILLING)
        return self.killed + sum(others)

    def text(self) -> str:
        """Return the verdict as a few lines of text."""
        return "\n".join(_lines(self))


def verdict_of(
    run: Path,
    facts: Mapping[str, Any],
    findings: Findings,
    calls: RecordedCalls,
    reached: Mapping[str, int],
) -> Verdict:
    """Return the verdict from a run's counts."""
    ended, spark = facts["ended"], facts["ended"].get("spark")
    reasons = list(_void_reasons(ended, findings))
    kills = {end: count for end, count in ended["ends"].items() if is_kill(end)}
    never = missing(facts.get("must_reach", ()), reached, calls, kills)
    reasons += [f"never reached: {state}" for state in never]
    disputed = False
    if spark is not None:
        reasons += _spark_reasons(spark, reached)
        disputed = spark["verdict"] in SPARK_JUDGED and not agrees(spark, reached)
    violated = findings.violations > 0 or disputed
    first = next((each.first for each in findings.invariants.values() if each.first), None)
    return Verdict(
        verdict=VIOLATION if violated else VOID if reasons else PASS,
        reasons=reasons,
        **_about(facts),
        load=list(ended.get("load", ())),
        seconds=ended["seconds"],
        kills=kills,
        faults=dict(calls.faults),
        messages=calls.messages,
        excused=findings.excused,
        invariants={name: asdict(each) for name, each in findings.invariants.items()},
        recoveries={kind: sorted(samples) for kind, samples in calls.recoveries.items()},
        reached=reached,
        spark=spark,
        context=list(_context(run, first)) if violated else [],
    )


OF_AN_ORPHAN: Final = "PG_REGRESSION"
OF_A_LOST_TAIL: Final = frozenset({OF_AN_ORPHAN, "CLOCK_SKEW", "PARKED"})
"""A producer ends a half again whose commit was lost: its record is older than its new commit. What
is parked is listed too, whatever else there is."""


def agrees(spark: Mapping[str, Any], reached: Mapping[str, int]) -> bool:
    """Return whether Spark finds what there is: nothing, or every orphan of a lost tail."""
    if spark["verdict"] not in SPARK_JUDGED:
        return False
    found, orphans = spark["classes"], reached.get(ORPHAN, 0)
    named = found.get(OF_AN_ORPHAN, 0)
    every = named <= orphans if reached.get(RETIRED_LEAF) else named == orphans
    return every and found.keys() <= OF_A_LOST_TAIL and bool(orphans or not found)


def _spark_reasons(spark: Mapping[str, Any], reached: Mapping[str, int]) -> Iterator[str]:
    """Yield why Spark's audit proves nothing, or what it disputes."""
    if not agrees(spark, reached):
        found = ", ".join(f"{name} {count}" for name, count in spark.get("classes", {}).items())
        orphans = f"{reached.get(ORPHAN, 0)} orphans of a lost tail"
        said = f"Spark's verdict is {spark['verdict']}: {spark.get('sentence', '')}"
        yield f"{said} ({found or 'nothing found'}; there are {orphans})"
    checked = spark.get("checked", {}).get("committed", 0)
    if spark["verdict"] in SPARK_JUDGED and checked < reached.get(COMMITTED, 0):
        yield f"Spark checked {checked} of {reached[COMMITTED]} committed messages"


def void(facts: Mapping[str, Any], reason: str) -> Verdict:
    """Return the verdict on a run that cannot be judged."""
    return Verdict(verdict=VOID, reasons=[reason], **_about(facts))


def write(run: Path, verdict: Verdict) -> None:
    """Write ``verdict.json``."""
    run.mkdir(parents=True, exist_ok=True)
    found = asdict(verdict) | {BACK: recovery_quantiles(verdict.recoveries)}
    (run / NAME).write_text(json.dumps(found, indent=1, default=list) + "\n")


def read(path: Path) -> Verdict:
    """Read a verdict back."""
    found = json.loads(path.read_text())
    found.pop(BACK, None)
    return Verdict(**found)


def recovery_quantiles(recoveries: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """Return how many recoveries there were of each fault, and p50, p95 and the longest."""
    names = ("p50", "p95", "longest")
    return {
        kind: {
            "samples": len(samples),
            **dict(zip(names, (round(each, 2) for each in quantiles_of(samples)), strict=True)),
        }
        for kind, samples in sorted(recoveries.items())
    }


def quantiles_of(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return p50, p95 and the maximum of at least one sample."""
    if len(samples) == 1:
        return (samples[0],) * 3
    cuts = quantiles(samples, n=100, method="inclusive")
    return cuts[49], cuts[94], max(samples)


def _about(facts: Mapping[str, Any]) -> dict[str, Any]:
    names = ("profile", "seed", "length", "pace", "git", "code_version", "versions", "machine")
    return {name: facts[name] for name in names if name in facts}


def _void_reasons(ended: Mapping[str, Any], findings: Findings) -> Iterator[str]:
    for error in ended["errors"]:
        yield f"a fault could not be performed: {error}"
    for end, count in ended["ends"].items():
        role, _, reason = end.partition(":")
        if reason.startswith(ENDED):
            yield f"{role} {reason} {count} times by itself"
    for name in NEEDED:
        if not findings.invariants[name].checked:
            yield f"{name} was not checked: {INVARIANTS[name]}"
    yield from findings.unproven


def _context(run: Path, first: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the lines of the history about the first violation."""
    if first is None:
        return
    names = [str(first[name]) for name in ("id", "tx", "later", "earlier") if first.get(name)]
    found = list[str]()
    for path in sorted((run / "history").glob("*.jsonl")):
        with path.open() as file:
            found += [line.strip()[:2000] for line in file if any(name in line for name in names)]
    yield from found[:SHOWN_LINES]


def _lines(verdict: Verdict) -> Iterator[str]:
    yield (
        f"{verdict.verdict}  {verdict.profile} seed {verdict.seed}: {verdict.killed} kills, "
        f"{verdict.faulted} faults, {verdict.messages} messages in {verdict.seconds:.0f} s"
    )
    yield from (f"  {reason}" for reason in verdict.reasons)
    for name, found in verdict.invariants.items():
        if found["violations"]:
            counts = f"{found['violations']} violations in {found['checked']} checks"
            yield f"  {name} {INVARIANTS[name]}: {counts}"
            yield f"     {json.dumps(found['first'], default=str)[:600]}"
    for kind, samples in sorted(verdict.recoveries.items()):
        middle, high, most = quantiles_of(samples)
        yield (
            f"  back after {kind}: p50 {middle:.2f} s, p95 {high:.2f} s, "
            f"longest {most:.2f} s ({len(samples)})"
        )
