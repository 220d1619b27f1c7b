"""Kinds of faults as data: target, rate and duration of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Range = tuple[float, float]
Choices = tuple[tuple[str, tuple[str | int | float, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """One kind of fault: its targets, rate and duration."""

    kind: str
    targets: tuple[str, ...]
    per_minute: float = 0.0
    """average number per minute, at random times"""
    planned: tuple[float, ...] = ()
    """fixed times, as shares of the run's length"""
    seconds: Range = (0.0, 0.0)
    calm_seconds: float = 1.0
    """no random fault begins earlier"""
    args: tuple[tuple[str, str | int | float], ...] = ()
    choices: Choices = ()
    """arguments with one value drawn for each fault"""


CHECKERS: Final = ("checker-0", "checker-1")
APIS: Final = ("api-0", "api-1")
CLIENTS: Final = ("client-0", "client-1")
ENDPOINT: Final = ("endpoint-0",)

RELAY_POINTS: Final = tuple(
    f"relay.{point}=kill@{chance}"
    for point, chance in (
        ("after_lock", 0.05),
        ("after_fence", 0.05),
        ("after_watermark", 0.05),
        ("after_replay", 0.05),
        ("after_select", 0.005),
        ("after_begin", 0.01),
        ("after_first_produce", 0.01),
        ("after_data_flush", 0.01),
        ("after_manifest", 0.01),
        ("before_commit", 0.01),
        ("after_commit", 0.01),
        ("after_cursor", 0.02),
    )
)
CHECK_POINTS: Final = (
    "checker.after_slice=kill@0.1",
    "checker.after_call=kill@0.02",
    "checker.before_commit=kill@0.1",
    "checker.after_commit=kill@0.1",
    "sweep.before_commit=kill@0.1",
    "sweep.after_commit=kill@0.1",
)
API_POINTS: Final = (
    "api.prepare.before_commit=kill@0.02",
    "api.prepare.after_commit=kill@0.02",
    "api.end.before_commit=kill@0.02",
    "api.end.after_commit=kill@0.02",
)
RETIRE_POINTS: Final = (
    "retire.before_detach=kill@0.5",
    "retire.after_detach=kill@0.5",
    "retire.after_drop=kill@0.3",
)
FRAMES_BY_CHANCE: Final = (
    *("EndTxn", "EndTxn", "EndTxn", "EndTxn"),
    *("Produce", "Produce", "AddPartitionsToTxn", "InitProducerId"),
)
"""EndTxn is the most frequent: the CLEAN rule depends on it."""
REPEATED_FRAMES: Final = ("Produce", "AddPartitionsToTxn", "InitProducerId")
"""EndTxn is missing: over TCP a second EndTxn exists only if the client sends it again after a cut.
A duplicate after a clean commit cannot happen, and no client of this protocol version survives it.
"""


def kills(relay: float, api: float, client: float, endpoint: float) -> tuple[Mix, ...]:
    """Return SIGKILLs of all programs at these rates per minute, some of them at failpoints."""
    half = (0.02, 0.9)
    return (
        Mix(kind="kill", targets=CHECKERS, per_minute=relay * 0.5),
        Mix(kind="kill_young", targets=CHECKERS, per_minute=relay * 0.125, seconds=half),
        Mix(
            kind="failpoint",
            targets=CHECKERS,
            per_minute=relay * 0.125,
            choices=(("point", RELAY_POINTS + CHECK_POINTS + RETIRE_POINTS),),
        ),
        Mix(kind="kill", targets=APIS, per_minute=api * 0.6),
        Mix(
            kind="failpoint",
            targets=APIS,
            per_minute=api * 0.2,
            choices=(("point", API_POINTS),),
        ),
        Mix(kind="kill", targets=CLIENTS, per_minute=client),
        Mix(kind="kill", targets=ENDPOINT, per_minute=endpoint),
    )


LINKS: Final = ("postgres", "kafka", "check")
HOSTILE_ENDPOINTS: Final = (
    *("silent", "drip", "endless_headers", "big_body", "gzip_bomb", "html", "wrong_id"),
    *("missing_id", "extra_id", "two_verdicts", "two_answers", "every_second", "cut_short"),
    *("reset", "not_http"),
)
CLOCKS: Final = ("+3d", "-2h", "x10")
"""Three days ahead, two hours behind, ten times as fast."""
BREAKAGE: Final = (
    Mix(kind="pause", targets=CHECKERS + APIS, planned=(0.7,), per_minute=12, seconds=(0.5, 6.0)),
    Mix(kind="pause", targets=CHECKERS, per_minute=0.4, seconds=(20.0, 60.0)),
    Mix(kind="postgres_stop", targets=("postgres",), per_minute=0.6, seconds=(0.0, 2.0)),
    Mix(kind="backend_kill", targets=("postgres",), per_minute=0.6),
    Mix(kind="broker_kill", targets=("broker-0",), per_minute=0.5, seconds=(0.0, 3.0)),
    Mix(kind="long_transaction", targets=("postgres",), per_minute=1, seconds=(1.0, 15.0)),
    Mix(kind="link_reset", targets=LINKS, per_minute=60),
    *(
        Mix(kind=kind, targets=LINKS, per_minute=0.8, seconds=(0.5, 6.0))
        for kind in (
            *("link_half_open", "link_cut_up", "link_cut_down"),
            *("link_refuse", "link_drip", "link_latency"),
        )
    ),
    Mix(
        kind="endpoint_zoo",
        targets=("check",),
        planned=(0.4,),
        per_minute=3,
        seconds=(1.0, 5.0),
        choices=(("beast", HOSTILE_ENDPOINTS),),
    ),
    Mix(
        kind="clock",
        targets=CHECKERS + APIS,
        planned=(0.65,),
        per_minute=1.2,
        seconds=(2.0, 8.0),
        choices=(("clock", CLOCKS),),
    ),
    Mix(
        kind="disk_full", targets=("postgres",), planned=(0.8,), per_minute=0.5, seconds=(1.0, 5.0)
    ),
)
"""All faults except kills."""

PASSED_LEAVES: Final = Mix(kind="pass_leaf", targets=("postgres",), planned=(0.01, 0.25))
"""Retirement follows about two minutes after a leaf is full, under whatever else happens then."""
RETENTION: Final = {
    "OUTBOX_RETENTION_SECONDS": "81",
    "OUTBOX_MAX_AGE_SECONDS": "80",
    "OUTBOX_RECONCILE_HOLD_SECONDS": "0",
}
"""Almost the shortest retention that the settings allow; a slow machine parks nothing by age."""
REFUSING: Final = ("chaos.three", "chaos.six")
REFUSALS: Final = (
    Mix(kind="refuse_size", targets=REFUSING, planned=(0.12, 0.5), seconds=(3.0, 6.0)),
    Mix(kind="refuse_write", targets=REFUSING, planned=(0.25, 0.6), seconds=(2.0, 4.0)),
    Mix(kind="refuse_topic", targets=("kafka",), planned=(0.2, 0.4), seconds=(5.0, 10.0)),
)
"""Kafka refuses records for good; the last ones come early enough to be released in the run."""
HALTS: Final = Mix(
    kind="other_database", targets=("postgres",), planned=(0.3, 0.55), seconds=(1.0, 4.0)
)

BROKER_SLOTS: Final = (7, 15, 22)
POSTGRES_SLOTS: Final = (4, 12, 20)
SLOTS: Final = 24


def slots(*numbers: int) -> tuple[float, ...]:
    """Return the times of some of a run's equal parts, as shares of its length."""
    return tuple((number + 0.3) / SLOTS for number in numbers)


ONE_AFTER_ANOTHER: Final = (
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
)
