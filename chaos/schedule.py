"""The schedule of faults: a pure function of the profile and the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from chaos.profiles import Mix, Profile

CALM_SECONDS: Final = 1.0
"""No fault begins earlier, and none ends later before the end of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: its start (seconds after the start of the faults) and its duration."""

    at: float
    kind: str
    target: str
    seconds: float = 0.0
    point: str = ""
    """the failpoint of a ``failpoint``"""


def schedule(profile: Profile, seed: int) -> tuple[Fault, ...]:
    """Return the run's faults in the order of their start."""
    faults = [
        fault
        for place, mix in enumerate(profile.mixes)
        for fault in _faults(mix, profile.seconds, random.Random(f"{seed}/{place}/{mix.kind}"))
    ]
    return tuple(sorted(faults, key=lambda fault: (fault.at, fault.kind, fault.target)))


def _faults(mix: Mix, seconds: float, chance: random.Random) -> Iterator[Fault]:
    for at in _times(mix, seconds, chance):
        yield Fault(
            at=round(at, 3),
            kind=mix.kind,
            target=chance.choice(mix.targets),
            seconds=round(chance.uniform(*mix.seconds), 3),
            point=chance.choice(mix.points) if mix.points else "",
        )


def _times(mix: Mix, seconds: float, chance: random.Random) -> Iterator[float]:
    """Yield the times of a Poisson process without the ends of the run."""
    at = CALM_SECONDS
    while True:
        at += chance.expovariate(mix.per_minute / 60)
        if at > seconds - mix.seconds[1] - CALM_SECONDS:
            return
        yield at
