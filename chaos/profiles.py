"""The profiles: length, load and faults of a run, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """One kind of fault: its targets, rate and duration."""

    kind: str
    targets: tuple[str, ...]
    per_minute: float
    seconds: tuple[float, float] = (0.0, 0.0)
    points: tuple[str, ...] = ()
    """each fault draws one of these failpoints"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Length, load and faults of a run."""

    name: str
    mixes: tuple[Mix, ...]
    seconds: float = 270.0
    brokers: int = 1
    client_processes: int = 2
    messages_per_second: float = 300.0
    """target rate of all clients together"""
    drain_seconds: float = 120.0
    """how long the backlog may stand still after the faults before it is empty"""
    spark: bool = True
    """Spark audits the stores too, which takes a minute more"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """additional settings of the programs"""


CHECKERS: Final = ("checker-0", "checker-1")
APIS: Final = ("api-0", "api-1")
CLIENTS: Final = ("client-0", "client-1")
ENDPOINT: Final = ("endpoint-0",)
POSTGRES: Final = ("postgres",)

CHECKER_POINTS: Final = (
    *(f"relay.after_{step}=kill@0.05" for step in ("lock", "fence", "watermark", "replay")),
    *(f"relay.after_{step}=kill@0.01" for step in ("select", "begin", "first_produce")),
    *(f"relay.after_{step}=kill@0.01" for step in ("data_flush", "manifest", "commit", "cursor")),
    "relay.before_commit=kill@0.01",
    *(f"checker.{step}=kill@0.1" for step in ("after_slice", "before_commit", "after_commit")),
    "checker.after_call=kill@0.02",
    *(f"sweep.{step}_commit=kill@0.1" for step in ("before", "after")),
)
API_POINTS: Final = tuple(
    f"api.{call}.{step}_commit=kill@0.02"
    for call in ("prepare", "end")
    for step in ("before", "after")
)


def kills(checker: float, api: float, client: float, endpoint: float) -> tuple[Mix, ...]:
    """Return SIGKILLs of all programs at these rates per minute, a third of them at failpoints."""
    return (
        Mix(kind="kill", targets=CHECKERS, per_minute=checker * 2 / 3),
        Mix(kind="failpoint", targets=CHECKERS, per_minute=checker / 3, points=CHECKER_POINTS),
        Mix(kind="kill", targets=APIS, per_minute=api * 2 / 3),
        Mix(kind="failpoint", targets=APIS, per_minute=api / 3, points=API_POINTS),
        Mix(kind="kill", targets=CLIENTS, per_minute=client),
        Mix(kind="kill", targets=ENDPOINT, per_minute=endpoint),
    )


KILL: Final = Profile(name="kill", mixes=kills(checker=15, api=12, client=6, endpoint=2))
MIXED: Final = Profile(
    name="mixed",
    mixes=(
        *kills(checker=6, api=6, client=3, endpoint=1),
        Mix(kind="pause", targets=CHECKERS + APIS, per_minute=4, seconds=(0.5, 6.0)),
        Mix(kind="pause", targets=CHECKERS, per_minute=0.4, seconds=(20.0, 60.0)),
        Mix(kind="postgres_stop", targets=POSTGRES, per_minute=0.6, seconds=(0.0, 2.0)),
        Mix(kind="backend_kill", targets=POSTGRES, per_minute=0.6),
        Mix(kind="long_transaction", targets=POSTGRES, per_minute=1, seconds=(1.0, 15.0)),
        Mix(kind="broker_kill", targets=("one",), per_minute=0.5, seconds=(0.0, 3.0)),
        Mix(kind="refuse_size", targets=("chaos.three",), per_minute=0.5, seconds=(4.0, 8.0)),
    ),
)
FAILOVER: Final = Profile(
    name="failover",
    mixes=(
        Mix(kind="promote_synchronous", targets=POSTGRES, per_minute=1.5, seconds=(1.0, 3.0)),
        Mix(kind="promote_asynchronous", targets=POSTGRES, per_minute=1.5, seconds=(1.0, 4.0)),
        Mix(kind="restore", targets=POSTGRES, per_minute=0.5, seconds=(2.0, 4.0)),
        *kills(checker=3, api=3, client=2, endpoint=1),
    ),
)
BROKERS: Final = Profile(
    name="brokers",
    brokers=3,
    messages_per_second=200.0,
    mixes=(
        Mix(kind="broker_kill", targets=("one",), per_minute=1.5, seconds=(0.0, 8.0)),
        Mix(kind="broker_kill", targets=("two",), per_minute=0.5, seconds=(1.0, 8.0)),
        *kills(checker=4, api=4, client=2, endpoint=1),
    ),
)
"""Three brokers: the loss of one is tolerated, the loss of two pauses publishing."""

PROFILES: Final = {profile.name: profile for profile in (KILL, MIXED, FAILOVER, BROKERS)}
