"""The work of `outbox chaos`: runs, slices of runs and repeated judging; returns exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from chaos.judge import FACTS, judge
from chaos.judge.verdict import Verdict, write
from chaos.profiles.catalogue import PROFILES
from chaos.profiles.kafka_releases import RELEASE_PROFILES
from chaos.profiles.profile import Profile
from chaos.run import evidence
from chaos.run.matrix import fetched, record, run_matrix, table_of
from chaos.run.runner import ShowLine
from chaos.run.slices import VERDICT, Slice, run_and_judge, slices, thin_out
from chaos.run.totals import add_up
from cli.invocation.exit_codes import CommandFailed, ExitCode

EXIT: Final = {"PASS": 0, "VIOLATION": 7, "VOID": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of the command line."""

    profile: str
    seed: int
    seconds: float | None
    root: Path
    slices: int
    resume: bool
    spark: bool | None
    """None: as the profile says"""
    kafka: str = ""
    pace: float = 1.0
    """share of the profile's random faults: a slow machine has fewer of them in the same time"""


def run_profile(options: RunOptions, say: ShowLine) -> int:
    """Run and judge a profile; print the verdict. Raises CommandFailed."""
    profile = _profile(options)
    root = options.root.resolve()
    if root.exists() and not options.resume:
        raise CommandFailed(f"{root} exists; --resume continues its slices", ExitCode.CONFLICT)
    if options.slices == 1 and not options.resume:
        return _report(root, _one(Slice(folder=root, seed=options.seed), profile, say))
    return _several(options, profile, root, say)


def run_on_each(
    options: RunOptions, releases: Sequence[str], say: ShowLine, *, record_them: bool
) -> int:
    """Run a profile on each release of Kafka; print the table. Raises CommandFailed."""
    profile, root = _profile(options), options.root.resolve()
    wanted = fetched(releases)
    if root.exists():
        raise CommandFailed(f"{root} exists", ExitCode.CONFLICT)
    runs = run_matrix(root, profile, wanted, options.seed, say)
    sys.stdout.write("\n".join([*table_of(runs), str(root), ""]))
    if record_them:
        record(runs, profile.name)
    return max((EXIT[each.verdict.verdict] for each in runs), default=0)


def record_evidence(options: RunOptions, pages: Path, say: ShowLine) -> int:
    """Run the slices of a profile; when all passed, write page, JSON and row of their sum."""
    profile = _profile(options)
    slices = options.slices or profile.slices
    code = _several(replace(options, slices=slices), profile, options.root.resolve(), say)
    if code == ExitCode.OK:
        evidence.record(add_up(options.root), pages)
    return code


def check_again(folder: Path) -> int:
    """Judge a run's files, write and print the verdict.

    Raises CommandFailed, and writes nothing, for a folder that is no run and for a run that kept
    only its verdict.
    """
    if (folder / VERDICT).exists() and not (folder / "leftovers").exists():
        line = f"{folder} passed and kept only its verdict"
        raise CommandFailed(line, ExitCode.CONFLICT)
    if not (folder / FACTS).exists():
        line = f"{folder} has no {FACTS}; name the folder of one run, or of one slice of a run"
        raise CommandFailed(line, ExitCode.NOT_FOUND)
    verdict = judge(folder)
    write(folder, verdict)
    return _report(folder, verdict)


def _several(options: RunOptions, profile: Profile, root: Path, say: ShowLine) -> int:
    """Run the slices without a verdict until one does not pass; add up all verdicts."""
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    for part in slices(root, options.seed, options.slices):
        if part.judged:
            continue
        say(f"{part.folder.name}")
        verdict = _one(part, profile, say)
        if verdict.verdict != "PASS":
            return _report(part.folder, verdict)
    totals = add_up(root)
    sys.stdout.write(f"{totals.text()}\n")
    return EXIT[totals.verdict]


def _one(part: Slice, profile: Profile, say: ShowLine) -> Verdict:
    verdict = run_and_judge(part.folder, profile, part.seed, say)
    if verdict.verdict == "PASS":
        thin_out(part.folder)
    return verdict


def _report(folder: Path, verdict: Verdict) -> int:
    sys.stdout.write(f"{verdict.text()}\n{folder}\n")
    return EXIT[verdict.verdict]


def _profile(options: RunOptions) -> Profile:
    profiles = {**PROFILES, **RELEASE_PROFILES}
    profile = profiles.get(options.profile)
    if profile is None:
        known = ", ".join(sorted(profiles))
        raise CommandFailed(f"unknown profile {options.profile!r}; known: {known}", ExitCode.USAGE)
    return replace(
        profile.paced(options.pace),
        seconds=options.seconds or profile.seconds,
        spark=profile.spark if options.spark is None else options.spark,
        kafka=options.kafka,
    )
