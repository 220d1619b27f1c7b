"""Profiles for several releases of Kafka: the same kills on each, and partitions without a leader.

The leaderless ones are for releases that skip markers. With one replica the death of one broker
suffices. With three, every in-sync replica dies at once. The first broker is the only controller
and never dies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from chaos.profiles.fault_mixes import CHECKERS, Mix, kills
from chaos.profiles.profile import Profile
from chaos.profiles.states import EACH_KILLED, ENDED_BOTH_WAYS

RELEASES: Final = Profile(
    name="releases",
    seconds=90.0,
    messages_per_second=300.0,
    drain_seconds=120.0,
    mixes=(
        *kills(relay=30, api=40, client=20, endpoint=6),
        Mix(
            kind="broker_kill",
            targets=("broker-0",),
            planned=(0.15, 0.4, 0.65, 0.9),
            seconds=(0.0, 3.0),
        ),
    ),
    must_reach=(*ENDED_BOTH_WAYS, *EACH_KILLED, "fault broker_kill"),
)
"""Kills of every program and of the broker, short enough for a run on each release."""
DOWN_SECONDS: Final = (6.0, 9.0)
MET: Final = ("entry published", "fault leaderless_commit", "fault leaderless_fence")
HEALED: Final = "record that ended an open transaction"
"""What the guard writes when a marker was skipped: without it nothing was skipped, or it slept."""

LEADERLESS: Final = Profile(
    name="leaderless",
    seconds=240.0,
    brokers=2,
    controllers=1,
    replicas=1,
    messages_per_second=60.0,
    drain_seconds=240.0,
    mixes=tuple(
        Mix(kind=kind, targets=("brokers",), planned=planned, seconds=DOWN_SECONDS)
        for kind, planned in (
            ("leaderless_commit", (0.08, 0.55)),
            ("leaderless_fence", (0.32, 0.78)),
        )
    ),
    must_reach=(*MET, HEALED),
)
LEADERLESS_ISR: Final = replace(
    LEADERLESS,
    name="leaderless-isr",
    brokers=4,
    replicas=3,
)
LEADERLESS_CHANCE: Final = replace(
    LEADERLESS,
    name="leaderless-chance",
    messages_per_second=200.0,
    mixes=(
        Mix(kind="broker_kill", targets=("broker-1",), per_minute=5, seconds=(1.0, 6.0)),
        Mix(kind="kill", targets=CHECKERS, per_minute=6),
    ),
    must_reach=("entry published", "fault broker_kill", "checker killed"),
)
UNGUARDED: Final = {"OUTBOX_FAILPOINTS": "relay.settle=skip"}
"""Without the guard: the control group must lose and double."""


def _control_of(guarded: Profile) -> Profile:
    """Return the control group of a profile: it ends nothing that hangs."""
    reached = tuple(state for state in guarded.must_reach if state != HEALED)
    name = f"{guarded.name}-unguarded"
    return replace(guarded, name=name, settings=UNGUARDED, must_reach=reached)


RELEASE_PROFILES: Final = {RELEASES.name: RELEASES} | {
    profile.name: profile
    for guarded in (LEADERLESS, LEADERLESS_ISR, LEADERLESS_CHANCE)
    for profile in (guarded, _control_of(guarded))
}
