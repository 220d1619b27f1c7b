"""What `outbox chaos` does: runs, slices of runs, and judging again; returns exit codes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from chaos.judge import judge
from chaos.judge.totals import add_up
from chaos.judge.verdict import Verdict, write
from chaos.profiles import PROFILES, Profile
from chaos.run import Say
from chaos.slices import VERDICT, Slice, run_and_judge, slices, thin_out
from cli.exit_codes import CommandFailed, ExitCode

EXIT: Final = {"PASS": 0, "VIOLATION": 7, "VOID": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says."""

    profile: str
    seed: int
    seconds: float | None
    root: Path
    slices: int
    resume: bool
    spark: bool


def run_asked(asked: Asked, say: Say) -> int:
    """Run and judge what is asked for; print the verdict. Raises CommandFailed."""
    profile = _profile(asked)
    root = asked.root.resolve()
    if root.exists() and not asked.resume:
        raise CommandFailed(f"{root} exists; --resume goes on with its slices", ExitCode.CONFLICT)
    if asked.slices == 1 and not asked.resume:
        return _report(root, _one(Slice(folder=root, seed=asked.seed), profile, say))
    return _several(asked, profile, root, say)


def check_again(folder: Path) -> int:
    """Judge a run's files, write and print the verdict.

    Raises CommandFailed for a run of which only the verdict was kept.
    """
    if (folder / VERDICT).exists() and not (folder / "leftovers").exists():
        line = f"{folder} passed and was thinned out: its verdict is all that is left"
        raise CommandFailed(line, ExitCode.CONFLICT)
    verdict = judge(folder)
    write(folder, verdict)
    return _report(folder, verdict)


def _several(asked: Asked, profile: Profile, root: Path, say: Say) -> int:
    """Run the slices that have no verdict yet until one does not pass; add all of them up."""
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    for part in slices(root, asked.seed, asked.slices):
        if part.judged:
            continue
        say(f"{part.folder.name}")
        verdict = _one(part, profile, say)
        if verdict.verdict != "PASS":
            return _report(part.folder, verdict)
    totals = add_up(root)
    sys.stdout.write(f"{totals.text()}\n")
    return EXIT[totals.verdict]


def _one(part: Slice, profile: Profile, say: Say) -> Verdict:
    verdict = run_and_judge(part.folder, profile, part.seed, say)
    if verdict.verdict == "PASS":
        thin_out(part.folder)
    return verdict


def _report(folder: Path, verdict: Verdict) -> int:
    sys.stdout.write(f"{verdict.text()}\n{folder}\n")
    return EXIT[verdict.verdict]


def _profile(asked: Asked) -> Profile:
    profile = PROFILES.get(asked.profile)
    if profile is None:
        known = ", ".join(sorted(PROFILES))
        raise CommandFailed(f"no profile {asked.profile!r}; known: {known}", ExitCode.USAGE)
    return replace(profile, seconds=asked.seconds or profile.seconds, spark=asked.spark)
