"""The schedule of faults: a pure function of the profile and the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from chaos.profiles.fault_mixes import Mix
from chaos.profiles.profile import Profile

Value = str | int | float
Args = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: its start (seconds after the start of the faults) and its duration."""

    at: float
    kind: str
    target: str
    seconds: float = 0.0
    args: Args = ()

    def arg(self, name: str, default: Value) -> Value:
        """Return one of the arguments."""
        return dict(self.args).get(name, default)


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
        args = (*mix.args, *((name, chance.choice(values)) for name, values in mix.choices))
        yield Fault(
            at=round(at, 3),
            kind=mix.kind,
            target=chance.choice(mix.targets),
            seconds=round(chance.uniform(*mix.seconds), 3),
            args=args,
        )


def _times(mix: Mix, seconds: float, chance: random.Random) -> Iterator[float]:
    """Yield the planned times, then those of a Poisson process without the ends of the run."""
    yield from (share * seconds for share in mix.planned)
    at = mix.calm_seconds
    while mix.per_minute:
        at += chance.expovariate(mix.per_minute / 60)
        if at > seconds - mix.seconds[1] - 0.5:
            return
        yield at
