"""Looks for fewer faults that still break what a run has broken: halves, quarters, and so on.

A run is not exactly repeatable, so a set of faults that passes once is only taken for harmless;
what is returned has been seen to break.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from chaos.profiles import PROFILES
from chaos.run import Say
from chaos.schedule import Fault, schedule
from chaos.slices import erase_servers, run_and_judge

Faults = tuple[Fault, ...]
Breaks = Callable[[Faults], bool]


def shrink_run(run: Path, tries: int, say: Say) -> Faults | None:
    """Return the fewest faults found that break the run's profile, None if none broke it again.

    The runs are kept in ``shrink`` below the run's folder.
    """
    facts = json.loads((run / "run.json").read_text())
    profile = replace(PROFILES[facts["profile"]], seconds=facts["length"])
    seed, count = facts["seed"], 0

    def breaks(faults: Faults) -> bool:
        nonlocal count
        count += 1
        folder = run / "shrink" / f"{count:03}-{len(faults)}-faults"
        verdict = run_and_judge(folder, profile, seed, lambda _: None, faults)
        erase_servers(folder)
        say(f"{len(faults)} faults: {verdict.verdict}")
        return str(verdict.verdict) == "VIOLATION"

    whole = schedule(profile, seed)
    smallest = smaller(whole, breaks, tries)
    return None if smallest == whole else smallest


def smaller(faults: Faults, breaks: Breaks, tries: int) -> Faults:
    """Return the fewest faults that were seen to break, with at most so many tries (ddmin)."""
    parts = 2
    while len(faults) > 1 and tries > 0:
        for candidate in _candidates(faults, parts):
            if tries == 0:
                return faults
            tries -= 1
            if breaks(candidate):
                faults, parts = candidate, 2
                break
        else:
            if parts >= len(faults):
                return faults
            parts = min(parts * 2, len(faults))
    return faults


def _candidates(faults: Faults, parts: int) -> Sequence[Faults]:
    """Return each part alone, then everything but each part."""
    size = -(-len(faults) // parts)
    chunks = [faults[first : first + size] for first in range(0, len(faults), size)]
    without = [
        tuple(fault for other in chunks if other is not chunk for fault in other)
        for chunk in chunks
    ]
    return chunks if len(chunks) == 2 else [*chunks, *without]
