"""Adds up the verdicts of one code version, so that a long run can be split into slices."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chaos.judge.invariants import INVARIANTS
from chaos.judge.verdict import NAME, PASS, VIOLATION, VOID, Verdict, read, recovery_quantiles
from chaos.profiles.catalogue import PROFILES
from chaos.run.code_version import commit_words

TARGETS: Final[Mapping[str, Mapping[str, int]]] = {
    "smoke": {"kills": 80, "messages": 20_000},
    "kill": {"kills": 10_000, "messages": 2_000_000},
    "mixed": {"faults": 5_000},
    "frames": {"fault frame_hold": 1_000},
    "failover": {"fault promote_synchronous": 50, "fault promote_asynchronous": 50},
}
"""The targets of a profile for all its slices together."""


class MixedVersions(ValueError):
    """Verdicts of different code or profiles cannot be added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The sum of some runs of one profile and one code version."""

    verdict: str
    profile: str
    code_version: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    load: Sequence[float]
    """the lowest and the highest load of the slices; empty if they did not note it"""
    git: str
    seeds: Sequence[int | None]
    length: float
    """the seconds of each slice in which faults happened"""
    pace: float
    seconds: float
    kills: Mapping[str, int]
    faults: Mapping[str, int]
    messages: int
    excused: int
    killed: int
    faulted: int
    invariants: Mapping[str, Mapping[str, int]]
    recoveries: Mapping[str, Mapping[str, float]]
    reached: Mapping[str, int]
    spark: Mapping[str, int]
    """Spark's verdicts and their counts; it does not run after every slice."""
    spark_found: Mapping[str, int]
    """what these audits found, by class; information is left out"""

    @property
    def short(self) -> Sequence[str]:
        """Return the targets of the profile that the runs have not reached."""
        done = {
            "kills": self.killed,
            "faults": self.faulted,
            "messages": self.messages,
            **{f"fault {kind}": count for kind, count in self.faults.items()},
        }
        wanted = TARGETS.get(self.profile, {})
        return [
            f"{done.get(what, 0)} of {count} {what}"
            for what, count in wanted.items()
            if done.get(what, 0) < count
        ]

    def text(self) -> str:
        """Return the totals as Markdown."""
        return "\n".join(_page(self))

    def json(self) -> str:
        """Return the totals as JSON."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(fields, indent=1) + "\n"


def add_up(root: Path) -> Totals:
    """Add up every verdict below a folder.

    The total is PASS only if all verdicts are. Raises MixedVersions, and FileNotFoundError when
    there is no verdict.
    """
    paths = sorted(root.rglob(NAME))
    if not paths:
        raise FileNotFoundError(f"no {NAME} below {root}")
    return total_of([read(path) for path in paths])


def total_of(verdicts: Sequence[Verdict]) -> Totals:
    """Add verdicts up; see ``add_up``."""
    kinds = {(each.profile, each.code_version) for each in verdicts}
    if len(kinds) > 1:
        raise MixedVersions(f"different runs: {sorted(kinds)}")
    words = {each.verdict for each in verdicts}
    first = verdicts[0]
    return Totals(
        verdict=next((word for word in (VIOLATION, VOID) if word in words), PASS),
        profile=first.profile,
        code_version=first.code_version,
        versions=first.versions,
        machine=first.machine,
        load=_range([each for verdict in verdicts for each in verdict.load]),
        git=first.git,
        seeds=[each.seed for each in verdicts],
        length=max(each.length for each in verdicts),
        pace=min(each.pace for each in verdicts),
        seconds=round(sum(each.seconds for each in verdicts), 1),
        kills=_sum(each.kills for each in verdicts),
        faults=_sum(each.faults for each in verdicts),
        messages=sum(each.messages for each in verdicts),
        excused=sum(each.excused for each in verdicts),
        killed=sum(each.killed for each in verdicts),
        faulted=sum(each.faulted for each in verdicts),
        invariants={
            name: {
                count: sum(each.invariants.get(name, {}).get(count, 0) for each in verdicts)
                for count in ("checked", "violations")
            }
            for name in INVARIANTS
        },
        recoveries=_recoveries(verdicts),
        reached=_sum(each.reached for each in verdicts),
        spark=_sum({each.spark["verdict"]: 1} for each in verdicts if each.spark),
        spark_found=_sum(each.spark.get("classes", {}) for each in verdicts if each.spark),
    )


def _range(samples: Sequence[float]) -> list[float]:
    return [min(samples), max(samples)] if samples else []


def _sum(counts: Iterator[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total.most_common())


def _recoveries(verdicts: Sequence[Verdict]) -> dict[str, dict[str, float]]:
    samples: dict[str, list[float]] = defaultdict(list)
    for verdict in verdicts:
        for kind, seconds in verdict.recoveries.items():
            samples[kind].extend(seconds)
    return recovery_quantiles(samples)


def _smaller(totals: Totals) -> str:
    """Return a sentence about runs that are smaller than the profile's; empty if they are not."""
    profile = PROFILES.get(totals.profile)
    if profile is None:
        return ""
    done, planned = (len(totals.seeds), totals.length), (profile.slices, profile.seconds)
    if done >= planned and totals.length >= profile.seconds and totals.pace >= 1:
        return ""
    return (
        f"Smaller than the profile: slices {done[0]} of {planned[0]}, seconds of each "
        f"{done[1]:.0f} of {planned[1]:.0f}, random faults {totals.pace:.0%}."
    )


def _load(totals: Totals) -> str:
    """Return a sentence about the load; recovery times mean little on a busy machine."""
    if not totals.load:
        return ""
    low, high = totals.load
    return f" Load {low:.0f} to {high:.0f} on {totals.machine.get('cores')} cores."


def _spark(totals: Totals) -> Iterator[str]:
    """Yield what Spark found; a slice passes only if it found what there was to find."""
    if totals.spark:
        words = ", ".join(f"{word} in {count}" for word, count in totals.spark.items())
        yield from ("", f"Spark's audits, by slices: {words}.")
    if totals.spark_found:
        found = ", ".join(f"{name} {count}" for name, count in totals.spark_found.items())
        yield f"Found, as it must be after a lost tail: {found}."


def _again(totals: Totals) -> str:
    """Return the command that repeats a slice as it was."""
    pace = f" --pace {totals.pace:g}" if totals.pace < 1 else ""
    about = f"--seed {totals.seeds[0]} --seconds {totals.length:g}{pace}"
    return f"outbox chaos run --profile {totals.profile} {about}"


def _page(totals: Totals) -> Iterator[str]:
    yield f"# {totals.profile}: {totals.verdict}"
    yield ""
    yield (
        f"{totals.killed} processes killed, {totals.faulted} faults in all, "
        f"{totals.messages} messages acknowledged, {totals.seconds / 60:.0f} minutes. "
        f"Slices: {len(totals.seeds)}, {totals.length:.0f} s of faults in each. Kafka "
        f"{totals.versions.get('kafka')}, code version `{totals.code_version}`, "
        f"{commit_words(totals.git)}.{_load(totals)}"
    )
    if planned := _smaller(totals):
        yield from ("", planned)
    if totals.short:
        yield from ("", f"Short of the profile's target: {', '.join(totals.short)}.")
    if totals.excused:
        yield from ("", f"Not judged: {totals.excused} answers about what PostgreSQL lost later.")
    yield from ("", "| invariant | checked | violations |", "|---|---|---|")
    for name, found in totals.invariants.items():
        yield f"| {name}: {INVARIANTS[name]} | {found['checked']} | {found['violations']} |"
    yield from ("", "| kill or fault | times |", "|---|---|")
    yield from (f"| {end.replace(':', ', ')} | {count} |" for end, count in totals.kills.items())
    yield from (f"| fault: {kind} | {count} |" for kind, count in totals.faults.items())
    yield from ("", "| back after | samples | p50 s | p95 s | longest s |", "|---|---|---|---|---|")
    for kind, back in totals.recoveries.items():
        cells = (back["samples"], back["p50"], back["p95"], back["longest"])
        yield f"| {kind} | " + " | ".join(str(cell) for cell in cells) + " |"
    yield from ("", "| reached | times |", "|---|---|")
    yield from (f"| {state} | {count} |" for state, count in totals.reached.items())
    yield from _spark(totals)
    yield from (
        "",
        f"Repeat a slice: `{_again(totals)}`.",
    )
    yield from ("", f"Seeds: {', '.join(str(seed) for seed in totals.seeds)}.")
    yield f"Machine: {json.dumps(totals.machine)}. Versions: {json.dumps(totals.versions)}."
