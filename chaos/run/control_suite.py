"""Runs all control groups: wrong relays that the judge must report, each for its own reason.

A harness that lets one of them pass proves nothing about correct relays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.controls import clean_rule
from chaos.controls.result import ControlResult
from chaos.controls.seeded_fault import seed_and_judge
from chaos.judge.verdict import VIOLATION, Verdict
from chaos.profiles.catalogue import KILL
from chaos.profiles.fault_mixes import CHECKERS, Mix, kills
from chaos.profiles.profile import Profile
from chaos.run.runner import ShowLine
from chaos.run.slices import erase_servers, run_and_judge


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroup:
    """A wrong relay under some faults; it must violate one of ``shows``, all of ``shows_all``."""

    profile: Profile
    shows: frozenset[str]
    shows_all: frozenset[str] = frozenset()


NAIVE_CURSOR: Final = Profile(
    name="control-naive-cursor",
    seconds=40.0,
    apis=4,
    client_processes=2,
    clients_each=12,
    checkers=1,
    programs={"checker": "chaos.controls.naive_cursor:main"},
    mixes=(),
)
MARK_AFTER_PUBLISH: Final = Profile(
    name="control-mark-after-publish",
    seconds=45.0,
    programs={"checker": "chaos.controls.mark_after_publish:main"},
    mixes=(Mix(kind="kill", targets=CHECKERS, per_minute=80),),
)
PLAIN_CURSOR: Final = Profile(
    name="control-plain-cursor",
    seconds=40.0,
    programs={"checker": "chaos.controls.plain_cursor:main"},
    mixes=(Mix(kind="restore", targets=("postgres",), planned=(0.2, 0.6), seconds=(2.0, 4.0)),),
)
AT_LEAST_ONCE: Final = Profile(
    name="control-at-least-once",
    seconds=45.0,
    settings={"OUTBOX_RELAY_DELIVERY": "at_least_once"},
    mixes=(Mix(kind="kill", targets=CHECKERS, per_minute=80),),
)
"""The product's own mode, judged by the rules of exactly_once: the same kills must show there."""
SOUND: Final = Profile(
    name="control-sound",
    seconds=20.0,
    messages_per_second=KILL.messages_per_second,
    mixes=kills(relay=90, api=160, client=115, endpoint=30),
)
CONTROLS: Final = (
    ControlGroup(profile=NAIVE_CURSOR, shows=frozenset({"I3", "I10"})),
    ControlGroup(profile=MARK_AFTER_PUBLISH, shows=frozenset({"I1"})),
    ControlGroup(profile=PLAIN_CURSOR, shows=frozenset({"I3", "I10"})),
    ControlGroup(profile=AT_LEAST_ONCE, shows=frozenset({"I1"}), shows_all=frozenset({"I1", "I6"})),
    *(ControlGroup(profile=profile, shows=shows) for profile, shows in clean_rule.MUST_SHOW),
)


def run_controls(root: Path, seed: int, say: ShowLine) -> list[ControlResult]:
    """Run every control group, each in its own folder below the root."""
    results = [run_control(control, root / control.profile.name, seed, say) for control in CONTROLS]
    return [*results, *run_seeded_faults(root / "planted", seed, say)]


def run_seeded_faults(root: Path, seed: int, say: ShowLine) -> list[ControlResult]:
    """Seed faults into the final state of a correct run."""
    sound = root / "sound"
    run_and_judge(sound, SOUND, seed, say)
    erase_servers(sound)
    results = seed_and_judge(sound, root)
    for result in results:
        _show(result, say)
    return results


def run_control(control: ControlGroup, run: Path, seed: int, say: ShowLine) -> ControlResult:
    """Run one control group; return whether it was caught for its own reason."""
    say(control.profile.name)
    result = result_of(control, run_and_judge(run, control.profile, seed, say))
    erase_servers(run)
    _show(result, say)
    return result


def result_of(control: ControlGroup, verdict: Verdict) -> ControlResult:
    """Return whether a control group got the required verdict."""
    violated = {name for name, found in verdict.invariants.items() if found["violations"]}
    shown = sorted((control.shows | control.shows_all) & violated)
    caught = bool(control.shows & violated) and control.shows_all <= violated
    caught = caught and verdict.verdict == VIOLATION
    how = ", ".join(shown) or f"{verdict.verdict} {sorted(violated)} {verdict.reasons[:1]}"
    return ControlResult(name=control.profile.name, caught=caught, how=how)


def _show(result: ControlResult, say: ShowLine) -> None:
    say(f"{result.name}: {'caught' if result.caught else 'NOT CAUGHT'}, {result.how}")
