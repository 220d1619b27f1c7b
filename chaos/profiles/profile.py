"""One profile: length, programs, load and faults of a run, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from chaos.profiles.fault_mixes import Mix


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
    """how long the backlog may stand still after the faults before it is empty"""
    must_reach: tuple[str, ...] = ()
    """states without which a run proves nothing

    ``fault KIND`` is a fault that met something, ``ROLE killed`` a kill of a working program.
    """
    pace: float = 1.0
    slices: int = 1
    """the number of runs that are added up as evidence"""
    spark: bool = False
    """Spark audits the stores too, which takes a minute more"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """additional settings of the programs"""
    programs: Mapping[str, str] = field(default_factory=dict)
    """replacement of a real program by role: ``module:function``"""

    def paced(self, pace: float) -> Self:
        """Return it with this share of its random faults; planned ones stay."""
        mixes = tuple(replace(mix, per_minute=mix.per_minute * pace) for mix in self.mixes)
        return replace(self, mixes=mixes, pace=pace)

    def has_fault(self, kind: str) -> bool:
        """Return whether a kind of fault is among its mixes."""
        return any(mix.kind == kind for mix in self.mixes)
