"""The faults of a link's network, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Which way bytes go."""

    UP = "up"
    """from the client to the server"""
    DOWN = "down"


class Accept(StrEnum):
    """What becomes of new connections."""

    RELAY = "relay"
    SILENT = "silent"
    """They are accepted, and nothing is ever said: half-open."""
    RESET = "reset"
    """They are accepted and reset at once."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFaults:
    """What a link's network does to all its connections; by default nothing."""

    latency_seconds: float = 0.0
    """added each way"""
    jitter_seconds: float = 0.0
    """up to so much more, at random; order is kept"""
    bytes_per_second: float | None = None
    """each way and connection"""
    cut: tuple[Direction, ...] = ()
    """Nothing arrives in these directions; it does when they are healed, as TCP sends again."""
    accept: Accept = Accept.RELAY


NONE = LinkFaults()
