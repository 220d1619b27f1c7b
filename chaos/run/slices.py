"""A run with its verdict, or slices with seeds derived from one seed.

A root folder has one folder per slice, so a long run can be stopped and continued. A run that
passed keeps little.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.judge import judge
from chaos.judge.verdict import Verdict, write
from chaos.profiles.profile import Profile
from chaos.profiles.schedule import Fault
from chaos.run.runner import ShowLine, perform
from chaos.run.testbed import Age
from devservers.unprivileged import stand_ins_for

VERDICT: Final = "verdict.json"
SERVERS: Final = ("postgres", "kafka", "kafka-*")
BULKY: Final = ("leftovers", "truth", "logs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One run of a root folder."""

    folder: Path
    seed: int

    @property
    def judged(self) -> bool:
        """Return whether it has a verdict."""
        return (self.folder / VERDICT).exists()


def slices(root: Path, seed: int, count: int) -> Iterator[Slice]:
    """Yield the slices of a root; each seed is derived from the root's seed."""
    for number in range(1, count + 1):
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        derived = int.from_bytes(digest[:4])
        yield Slice(folder=root / f"slice-{number:03}-{derived}", seed=derived)


def run_and_judge(
    run: Path,
    profile: Profile,
    seed: int,
    say: ShowLine,
    faults: tuple[Fault, ...] | None = None,
    age: Age | None = None,
) -> Verdict:
    """Perform a run, judge it and write its verdict; an interrupted run is judged too.

    ``faults`` replace those of the seed, ``age`` lets the installation live before the run.
    """
    try:
        perform(run, profile, seed, say, faults, age)
    finally:
        verdict = judge(run)
        write(run, verdict)
    return verdict


def erase_servers(run: Path) -> None:
    """Delete the data of a run's servers, also in stand-in folders."""
    for place in (*stand_ins_for(run), *(each for name in SERVERS for each in run.glob(name))):
        shutil.rmtree(place, ignore_errors=True)


def thin_out(run: Path) -> None:
    """Reduce a run that passed to its verdict and its compressed history."""
    erase_servers(run)
    for name in BULKY:
        shutil.rmtree(run / name, ignore_errors=True)
    for path in sorted((run / "history").glob("*.jsonl")):
        with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", 1) as packed:
            shutil.copyfileobj(plain, packed)
        path.unlink()
