"""All profiles: programs, load and faults of a run, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from chaos.profiles.fault_mixes import (
    APIS,
    BREAKAGE,
    CHECKERS,
    CLIENTS,
    FRAMES_BY_CHANCE,
    LINKS,
    REPEATED_FRAMES,
    Mix,
    kills,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One profile: length, programs, load and faults of a run."""

    name: str
    seconds: float
    mixes: tuple[Mix, ...]
    checkers: int = 2
    apis: int = 2
    client_processes: int = 2
    clients_each: int = 8
    brokers: int = 1
    standby: str = "none"
    """none, synchronous or asynchronous"""
    proxies: bool = False
    """PostgreSQL, Kafka and the check endpoint are reached through proxies"""
    disk_megabytes: int = 0
    """the size of a separate disk for PostgreSQL, which needs root to mount; 0: none"""
    messages_per_second: float = 900.0
    """target rate of all clients together"""
    drain_seconds: float = 60.0
    """the longest wait for an empty backlog after the faults"""
    spark: bool = False
    """Spark audits the stores too, which takes a minute more"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """additional settings of the programs"""
    programs: Mapping[str, str] = field(default_factory=dict)
    """replacement of a real program by role: ``module:function``"""


SMOKE: Final = Profile(
    name="smoke",
    seconds=45.0,
    proxies=True,
    messages_per_second=700.0,
    mixes=(
        *kills(relay=45, api=60, client=25, endpoint=8),
        Mix(kind="postgres_stop", targets=("postgres",), planned=(0.45,)),
        Mix(
            kind="frame_hold",
            targets=("kafka",),
            planned=(0.2,),
            seconds=(2.0, 3.0),
            args=(("frame", "EndTxn"),),
        ),
        Mix(kind="restore", targets=("postgres",), planned=(0.7,), seconds=(1.5, 2.5)),
    ),
    drain_seconds=60.0,
)
KILL: Final = Profile(
    name="kill",
    seconds=270.0,
    messages_per_second=1100.0,
    mixes=kills(relay=90, api=160, client=115, endpoint=30),
)
FRAMES: Final = Profile(
    name="frames",
    seconds=270.0,
    proxies=True,
    mixes=(
        Mix(
            kind="frame_hold",
            targets=("kafka",),
            per_minute=60,
            seconds=(0.3, 6.0),
            choices=(("frame", FRAMES_BY_CHANCE), ("nth", (1, 2, 3))),
        ),
        Mix(
            kind="frame_repeat",
            targets=("kafka",),
            per_minute=15,
            seconds=(0.0, 4.0),
            choices=(("frame", REPEATED_FRAMES), ("nth", (1, 2, 3))),
        ),
        Mix(
            kind="frame_reorder",
            targets=("kafka",),
            per_minute=10,
            choices=(("frame", FRAMES_BY_CHANCE), ("overtaken_by", (1, 5, 50, 500))),
        ),
        Mix(
            kind="frame_drop_answer",
            targets=("kafka",),
            per_minute=10,
            choices=(("frame", FRAMES_BY_CHANCE),),
        ),
        *(
            Mix(kind=kind, targets=("postgres",), per_minute=5, seconds=(0.1, 3.0))
            for kind in ("packet_stall", "packet_cut", "packet_drop_answer")
        ),
        Mix(kind="kill", targets=CHECKERS, per_minute=6),
    ),
)

MIXED: Final = Profile(
    name="mixed",
    seconds=270.0,
    proxies=True,
    drain_seconds=120.0,
    disk_megabytes=1536,
    messages_per_second=600.0,
    mixes=(*kills(relay=60, api=100, client=50, endpoint=20), *BREAKAGE),
)
FAILOVER: Final = Profile(
    name="failover",
    seconds=270.0,
    proxies=True,
    messages_per_second=500.0,
    drain_seconds=120.0,
    mixes=(
        Mix(kind="promote_synchronous", targets=("postgres",), per_minute=2.2, seconds=(1.0, 3.0)),
        Mix(kind="promote_asynchronous", targets=("postgres",), per_minute=2.2, seconds=(1.0, 4.0)),
        Mix(kind="restore", targets=("postgres",), per_minute=0.25, seconds=(2.0, 4.0)),
        Mix(kind="restore_backup", targets=("postgres",), per_minute=0.25, seconds=(2.0, 4.0)),
        *kills(relay=6, api=10, client=5, endpoint=2),
    ),
)
BROKERS: Final = Profile(
    name="brokers",
    seconds=270.0,
    brokers=3,
    messages_per_second=300.0,
    drain_seconds=120.0,
    mixes=(
        Mix(
            kind="broker_kill",
            targets=("broker-0", "broker-1", "broker-2"),
            per_minute=0.6,
            seconds=(0.0, 8.0),
        ),
        Mix(kind="broker_kill_two", targets=("brokers",), planned=(0.3, 0.75), seconds=(1.0, 8.0)),
        Mix(kind="broker_kill_leader", targets=("brokers",), per_minute=0.6, seconds=(0.0, 8.0)),
        *(
            Mix(kind=kind, targets=("brokers",), planned=at, seconds=(0.0, 8.0))
            for kind, at in (
                ("broker_kill_coordinator", (0.08, 0.5)),
                ("broker_kill_controller", (0.18, 0.62)),
            )
        ),
        *kills(relay=12, api=12, client=6, endpoint=2),
    ),
)
"""Three brokers: the loss of one is tolerated, the loss of two pauses publishing."""
BROKER_SLOTS: Final = (7, 15, 22)
POSTGRES_SLOTS: Final = (4, 12, 20)
SLOTS: Final = 24


def slots(*numbers: int) -> tuple[float, ...]:
    """Return the times of some of a run's equal parts, as shares of its length."""
    return tuple((number + 0.3) / SLOTS for number in numbers)


ALONE: Final = Profile(
    name="alone",
    seconds=270.0,
    messages_per_second=300.0,
    mixes=(
        Mix(
            kind="kill",
            targets=CHECKERS,
            planned=slots(
                *set(range(SLOTS)).difference(
                    BROKER_SLOTS, POSTGRES_SLOTS, (slot + 1 for slot in BROKER_SLOTS)
                )
            ),
        ),
        Mix(kind="postgres_stop", targets=("postgres",), planned=slots(*POSTGRES_SLOTS)),
        Mix(kind="broker_kill", targets=("broker-0",), planned=slots(*BROKER_SLOTS)),
    ),
)
"""One fault after another, each with time to recover, to measure the recovery time."""
SOAK: Final = Profile(
    name="soak",
    seconds=8 * 3600.0,
    proxies=True,
    messages_per_second=270.0,
    drain_seconds=120.0,
    mixes=(
        Mix(kind="kill", targets=CHECKERS + APIS + CLIENTS, per_minute=0.6),
        Mix(kind="pause", targets=CHECKERS + APIS, per_minute=0.1, seconds=(0.5, 60.0)),
        Mix(kind="postgres_stop", targets=("postgres",), per_minute=0.1),
        Mix(kind="broker_kill", targets=("broker-0",), per_minute=0.1),
        Mix(kind="link_reset", targets=LINKS, per_minute=0.1),
    ),
)

PROFILES: Final = {
    profile.name: profile
    for profile in (SMOKE, KILL, FRAMES, MIXED, FAILOVER, BROKERS, ALONE, SOAK)
}
