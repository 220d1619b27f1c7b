"""The faults of a link's network, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """The direction of bytes."""

    UP = "up"
    """from the client to the server"""
    DOWN = "down"


class Accept(StrEnum):
    """The treatment of new connections."""

    RELAY = "relay"
    SILENT = "silent"
    """They are accepted, but carry no bytes: half-open."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFaults:
    """What a link's network does to all its connections; by default nothing."""

    latency_seconds: float = 0.0
    """added in each direction"""
    jitter_seconds: float = 0.0
    """random addition of up to this value; the order is kept"""
    bytes_per_second: float | None = None
    """per direction and connection"""
    cut: tuple[Direction, ...] = ()
    """Bytes in these directions arrive only after the fault, as TCP sends them again."""
    accept: Accept = Accept.RELAY


NONE = LinkFaults()
