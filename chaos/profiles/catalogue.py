"""All profiles: programs, load and faults of a run, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from chaos.profiles.fault_mixes import (
    APIS,
    BREAKAGE,
    CHECKERS,
    CLIENTS,
    FRAMES_BY_CHANCE,
    HALTS,
    LINKS,
    ONE_AFTER_ANOTHER,
    PASSED_LEAVES,
    REFUSALS,
    REPEATED_FRAMES,
    RETENTION,
    Mix,
    kills,
)
from chaos.profiles.states import ENDED_BOTH_WAYS, HALTED, LOST_TAIL, REFUSED, RETIRED


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
    controllers: int = 0
    """the first brokers that are controllers too; 0: all of them"""
    replicas: int = 0
    """of each topic; 0: one on each broker"""
    kafka: str = ""
    """a release that `make kafka` has fetched; empty: the usual one"""
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
    must_reach: tuple[str, ...] = ()
    """states without which a run proves nothing; ``fault KIND`` is a fault that met something"""
    pace: float = 1.0
    slices: int = 1
    """the number of runs that are added up as evidence"""
    spark: bool = False
    """Spark audits the stores too, which takes a minute more"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """additional settings of the programs"""
    programs: Mapping[str, str] = field(default_factory=dict)
    """replacement of a real program by role: ``module:function``"""

    def paced(self, pace: float) -> Profile:
        """Return it with this share of its random faults; planned ones stay."""
        mixes = tuple(replace(mix, per_minute=mix.per_minute * pace) for mix in self.mixes)
        return replace(self, mixes=mixes, pace=pace)

    def has_fault(self, kind: str) -> bool:
        """Return whether a kind of fault is among its mixes."""
        return any(mix.kind == kind for mix in self.mixes)


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
    must_reach=ENDED_BOTH_WAYS,
)
KILL: Final = Profile(
    name="kill",
    spark=True,
    seconds=270.0,
    messages_per_second=600.0,
    mixes=(*kills(relay=90, api=160, client=115, endpoint=30), PASSED_LEAVES),
    drain_seconds=120.0,
    settings=RETENTION,
    must_reach=(
        *(*ENDED_BOTH_WAYS, *RETIRED, "fault failpoint"),
        *("record of a transaction that was given up", "parked"),
    ),
    slices=8,
)
FRAMES: Final = Profile(
    name="frames",
    spark=True,
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
    must_reach=(
        *ENDED_BOTH_WAYS,
        *(f"fault frame_{how}" for how in ("hold", "repeat", "reorder", "drop_answer")),
        *(f"fault packet_{how}" for how in ("stall", "cut", "drop_answer")),
    ),
    slices=6,
)
MIXED: Final = Profile(
    name="mixed",
    spark=True,
    seconds=270.0,
    proxies=True,
    drain_seconds=120.0,
    disk_megabytes=1536,
    messages_per_second=600.0,
    mixes=(
        *kills(relay=60, api=100, client=50, endpoint=20),
        *BREAKAGE,
        *REFUSALS,
        PASSED_LEAVES,
        HALTS,
    ),
    settings=RETENTION,
    must_reach=(
        *(*ENDED_BOTH_WAYS, *RETIRED, *REFUSED, *HALTED),
        *("fault failpoint", "fault pause", "fault clock", "fault disk_full", "fault endpoint_zoo"),
    ),
    slices=4,
)
FAILOVER: Final = Profile(
    name="failover",
    spark=True,
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
    must_reach=(
        *(*ENDED_BOTH_WAYS, *LOST_TAIL, "fault promote_synchronous"),
        "fault promote_asynchronous",
    ),
    slices=6,
)
BROKERS: Final = Profile(
    name="brokers",
    spark=True,
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
    must_reach=(*ENDED_BOTH_WAYS, "fault broker_kill", "fault broker_kill_two"),
    slices=2,
)
"""Three brokers: the loss of one is tolerated, the loss of two pauses publishing."""
ALONE: Final = Profile(
    name="alone",
    spark=True,
    seconds=270.0,
    messages_per_second=300.0,
    drain_seconds=120.0,
    mixes=ONE_AFTER_ANOTHER,
    must_reach=(*ENDED_BOTH_WAYS, "fault postgres_stop", "fault broker_kill"),
    slices=2,
)
"""One fault after another, each with time to recover, to measure the recovery time."""
SOAK: Final = Profile(
    name="soak",
    spark=True,
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
    must_reach=(*ENDED_BOTH_WAYS, "fault pause", "fault postgres_stop", "fault broker_kill"),
)
LONG: Final = Profile(
    name="long",
    spark=True,
    seconds=3 * 3600.0,
    proxies=True,
    messages_per_second=120.0,
    drain_seconds=300.0,
    mixes=(
        *kills(relay=3, api=5, client=3, endpoint=1),
        Mix(kind="pause", targets=CHECKERS + APIS, per_minute=0.2, seconds=(0.5, 60.0)),
        Mix(kind="postgres_stop", targets=("postgres",), per_minute=0.1),
        Mix(kind="broker_kill", targets=("broker-0",), per_minute=0.1),
        Mix(kind="promote_asynchronous", targets=("postgres",), per_minute=0.05, seconds=(1, 4)),
        Mix(kind="restore", targets=("postgres",), per_minute=0.05, seconds=(2.0, 4.0)),
        Mix(kind="restore_backup", targets=("postgres",), per_minute=0.05, seconds=(2.0, 4.0)),
        Mix(kind="pass_leaf", targets=("postgres",), per_minute=0.1),
        *(replace(mix, planned=(), per_minute=0.05) for mix in (*REFUSALS, HALTS)),
    ),
    settings={
        "OUTBOX_RETENTION_SECONDS": "900",
        "OUTBOX_MAX_AGE_SECONDS": "600",
        "OUTBOX_RECONCILE_HOLD_SECONDS": "0",
    },
    must_reach=(*ENDED_BOTH_WAYS, *RETIRED, *REFUSED, *HALTED, *LOST_TAIL),
)
"""Hours of everything that ages an installation: leaves pass, retire, and are restored."""

PROFILES: Final = {
    profile.name: profile
    for profile in (SMOKE, KILL, FRAMES, MIXED, FAILOVER, BROKERS, ALONE, SOAK, LONG)
}
