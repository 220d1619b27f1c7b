"""All profiles: programs, load and faults of a run, as data."""

from __future__ import annotations

from dataclasses import replace
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
from chaos.profiles.profile import Profile
from chaos.profiles.states import (
    EACH_KILLED,
    ENDED_BOTH_WAYS,
    HALTED,
    LOST_TAIL,
    REFUSED,
    RETIRED,
)

SMOKE: Final = Profile(
    name="smoke",
    seconds=45.0,
    proxies=True,
    messages_per_second=250.0,
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
    must_reach=(*ENDED_BOTH_WAYS, *EACH_KILLED, "fault postgres_stop"),
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
        *(*ENDED_BOTH_WAYS, *EACH_KILLED, *RETIRED, "fault failpoint"),
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
        *(*ENDED_BOTH_WAYS, "checker killed"),
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
        *(*ENDED_BOTH_WAYS, *EACH_KILLED, *RETIRED, *REFUSED, *HALTED),
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
        *(*ENDED_BOTH_WAYS, *EACH_KILLED, *LOST_TAIL, "fault promote_synchronous"),
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
        Mix(
            kind="broker_kill_leader",
            targets=("brokers",),
            planned=(0.4,),
            per_minute=0.4,
            seconds=(0.0, 8.0),
        ),
        *(
            Mix(kind=kind, targets=("brokers",), planned=at, seconds=(0.0, 8.0))
            for kind, at in (
                ("broker_kill_coordinator", (0.08, 0.5)),
                ("broker_kill_controller", (0.18, 0.62)),
            )
        ),
        *kills(relay=12, api=12, client=6, endpoint=2),
    ),
    must_reach=(
        *(*ENDED_BOTH_WAYS, *EACH_KILLED, "fault broker_kill"),
        *(f"fault broker_kill_{which}" for which in ("two", "leader", "coordinator", "controller")),
    ),
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
    must_reach=(
        *(*ENDED_BOTH_WAYS, "checker killed"),
        *("fault postgres_stop", "fault broker_kill"),
    ),
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
    must_reach=(
        *(*ENDED_BOTH_WAYS, "api killed", "checker killed", "client killed"),
        *("fault pause", "fault postgres_stop", "fault broker_kill"),
    ),
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
        Mix(
            kind="pause",
            targets=CHECKERS + APIS,
            planned=(0.35,),
            per_minute=0.2,
            seconds=(0.5, 60.0),
        ),
        *(
            Mix(kind=kind, targets=(target,), planned=(at,), per_minute=rate, seconds=seconds)
            for kind, target, at, rate, seconds in (
                ("pass_leaf", "postgres", 0.01, 0.1, (0.0, 0.0)),
                ("postgres_stop", "postgres", 0.4, 0.1, (0.0, 2.0)),
                ("broker_kill", "broker-0", 0.48, 0.1, (0.0, 3.0)),
                ("restore", "postgres", 0.32, 0.05, (2.0, 4.0)),
                ("restore_backup", "postgres", 0.65, 0.05, (2.0, 4.0)),
                ("promote_asynchronous", "postgres", 0.75, 0.05, (1.0, 4.0)),
            )
        ),
        *(replace(mix, planned=mix.planned[:1], per_minute=0.05) for mix in (*REFUSALS, HALTS)),
    ),
    settings={
        "OUTBOX_RETENTION_SECONDS": "300",
        "OUTBOX_MAX_AGE_SECONDS": "240",
        "OUTBOX_RECONCILE_HOLD_SECONDS": "0",
    },
    must_reach=(
        *(*ENDED_BOTH_WAYS, *EACH_KILLED, *RETIRED, *REFUSED, *HALTED, *LOST_TAIL),
        *("fault pause", "fault postgres_stop", "fault broker_kill"),
        *("fault promote_asynchronous", "fault restore", "fault restore_backup"),
    ),
)
"""Hours of everything that ages an installation: leaves pass, retire, and are restored.

Each fault is planned once, so that also a shorter run reaches its states.
"""

PROFILES: Final = {
    profile.name: profile
    for profile in (SMOKE, KILL, FRAMES, MIXED, FAILOVER, BROKERS, ALONE, SOAK, LONG)
}
