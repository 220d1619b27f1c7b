"""The verdict on a run, as a file and as text.

PASS: every invariant was checked and holds. VIOLATION: one does not hold. VOID: nothing is proved,
because something could not be checked, a planned fault met nothing, or the harness itself failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from chaos.judge.calls import RecordedCalls
from chaos.judge.final_state import FinalState
from chaos.judge.findings import INVARIANTS, Findings
from chaos.programs import ENDED

PASS, VIOLATION, VOID = "PASS", "VIOLATION", "VOID"
NAME: Final = "verdict.json"
KILLING: Final = frozenset({"kill", "failpoint"})
"""Faults that are counted by the programs that they end."""
OF_A_LOST_TAIL: Final = "ORPHAN/forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on one run."""

    verdict: str
    reasons: list[str] = field(default_factory=list)
    profile: str = ""
    seed: int | None = None
    length: float = 0.0
    """the seconds in which faults happened"""
    code_version: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    kills: int = 0
    """programs that died by SIGKILL"""
    faults: Mapping[str, int] = field(default_factory=dict)
    """faults that met something, by kind"""
    messages: int = 0
    """acknowledged prepares"""
    excused: int = 0
    invariants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    spark: Mapping[str, Any] | None = None

    def text(self) -> str:
        """Return the verdict as a few lines of text."""
        return "\n".join(_lines(self))

    def write(self, run: Path) -> None:
        """Write ``verdict.json``."""
        run.mkdir(parents=True, exist_ok=True)
        (run / NAME).write_text(json.dumps(asdict(self), indent=1, default=list) + "\n")


def verdict_of(
    facts: Mapping[str, Any], findings: Findings, left: FinalState, calls: RecordedCalls
) -> Verdict:
    """Return the verdict from a run's counts."""
    spark = facts["ended"].get("spark")
    disputes = list(_disputes(spark, left)) if spark else []
    proofless = list(_void_reasons(facts, findings, calls))
    violated = findings.violations > 0 or disputes
    return Verdict(
        verdict=VIOLATION if violated else VOID if proofless else PASS,
        reasons=[*disputes, *proofless],
        **_about(facts),
        seconds=facts["ended"]["seconds"],
        kills=_kills(calls),
        faults={**+calls.faults},
        messages=len(calls.prepared),
        excused=findings.excused,
        invariants={name: asdict(each) for name, each in findings.invariants.items()},
        spark=spark,
    )


def void(facts: Mapping[str, Any], reason: str) -> Verdict:
    """Return the verdict on a run that cannot be judged."""
    return Verdict(verdict=VOID, reasons=[reason], **_about(facts))


def _about(facts: Mapping[str, Any]) -> dict[str, Any]:
    names = ("profile", "seed", "length", "code_version", "versions", "machine")
    return {name: facts[name] for name in names if name in facts}


def _kills(calls: RecordedCalls) -> int:
    return sum(count for (_, why), count in calls.ends.items() if why in KILLING)


def _disputes(spark: Mapping[str, Any], left: FinalState) -> Iterator[str]:
    """Yield what the audit found that is not there, or did not find."""
    orphans = left.by_id.keys() & left.lost.halves
    tail_lost = bool(left.lost.halves or left.lost.ops)
    expected = {OF_A_LOST_TAIL} if tail_lost else set()
    causes = spark.get("causes", {})
    if others := causes.keys() - expected:
        yield f"the audit found {', '.join(sorted(others))}: {spark['sentence']}"
    if spark["verdict"] != "none" and orphans and OF_A_LOST_TAIL not in causes:
        yield f"the audit named none of {len(orphans)} orphans"


def _void_reasons(
    facts: Mapping[str, Any], findings: Findings, calls: RecordedCalls
) -> Iterator[str]:
    yield from _harness_failures(facts["ended"])
    for (role, why), count in calls.ends.items():
        if why.startswith(ENDED):
            yield f"{role} {why} {count} times unasked"
    for name, found in findings.invariants.items():
        if not found.checked:
            yield f"{name} was not checked: {INVARIANTS[name]}"
    for kind in facts["planned"]:
        if not calls.faults[kind]:
            yield f"no {kind} met anything"


def _harness_failures(ended: Mapping[str, Any]) -> Iterator[str]:
    for error in ended["errors"]:
        yield f"a fault could not be performed: {error}"
    if any(count < 0 for count in ended["left"].values()):
        yield "the backlog could not be read at the end"
    if ended.get("spark", {}).get("verdict") == "none":
        yield f"the audit has no verdict: {ended['spark']['sentence']}"


def _lines(verdict: Verdict) -> Iterator[str]:
    faults = ", ".join(f"{kind} {count}" for kind, count in verdict.faults.items())
    yield (
        f"{verdict.verdict}  {verdict.profile} seed {verdict.seed}: {verdict.kills} kills, "
        f"{verdict.messages} messages in {verdict.seconds:.0f} s; faults: {faults}"
    )
    yield from (f"  {reason}" for reason in verdict.reasons)
    for name, found in verdict.invariants.items():
        if found["violations"]:
            counts = f"{found['violations']} violations in {found['checked']} checks"
            yield f"  {name} {INVARIANTS[name]}: {counts}"
            yield f"     {json.dumps(found['first'], default=str)[:600]}"
