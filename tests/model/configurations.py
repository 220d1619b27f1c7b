"""The configurations: the size of a world and its possible faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.model.scene import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A bounded world."""

    name: str
    relays: int = 1
    messages: int = 2
    """The number of message ids that are ever given out."""
    faults: Mapping[Fault, int] = field(default_factory=dict)
    """The limit of each fault."""
    flush_sizes: tuple[int, ...] = (1,)
    """The possible numbers of new messages that one flush decides."""
    open_flushes: int = 2
    batch_max: int = 2
    first_start: bool = False
    """The shard has never had an owner: there is no progress row."""


def _faults(**times: int) -> Mapping[Fault, int]:
    return {Fault[name.upper()]: n for name, n in times.items()}


SEARCHED: Final = (
    Configuration(
        name="one relay: two messages a flush, one a batch, tail lost, crash",
        flush_sizes=(1, 2),
        batch_max=1,
        faults=_faults(failover=1, crash=1),
    ),
    Configuration(
        name="two relays, first start: takeover, late frame",
        relays=2,
        first_start=True,
        faults=_faults(takeover=1, frame=1),
    ),
    Configuration(
        name="two relays: takeover, late frame, crash",
        relays=2,
        messages=1,
        faults=_faults(takeover=1, frame=1, crash=1),
    ),
    Configuration(
        name="one relay: tail lost, decided the other way, abort, crash",
        messages=1,
        faults=_faults(failover=1, rollback=1, abort=1, crash=1),
    ),
    Configuration(
        name="one relay, first start: three messages, a quiet day, crash",
        messages=3,
        first_start=True,
        faults=_faults(sign=1, crash=1),
    ),
    Configuration(
        name="two relays: a transaction that does not end, takeover, crash",
        relays=2,
        messages=1,
        faults=_faults(stuck=1, takeover=1, crash=1),
    ),
    Configuration(
        name="one relay: a transaction that does not end, late frame, crash",
        messages=1,
        faults=_faults(stuck=1, frame=1, crash=1),
    ),
    Configuration(
        name="one relay: refusals, crash",
        faults=_faults(refuse=3, crash=1),
    ),
    Configuration(
        name="one relay: refusals, tail lost",
        faults=_faults(refuse=2, failover=1),
        batch_max=1,
        open_flushes=1,
    ),
)
"""Searched by `make test`."""

LARGER: Final = (
    Configuration(
        name="two relays: a transaction that does not end, tail lost, takeover, crash",
        relays=2,
        messages=1,
        faults=_faults(stuck=1, takeover=1, failover=1, crash=1),
        open_flushes=1,
    ),
    Configuration(
        name="one relay: tail lost, flush aborted, crash",
        faults=_faults(failover=1, abort=1, crash=1),
    ),
    Configuration(
        name="two relays: tail lost, takeover, late frame",
        relays=2,
        messages=1,
        faults=_faults(failover=1, takeover=1, frame=1),
    ),
    Configuration(
        name="two relays: a refusal, takeover",
        relays=2,
        faults=_faults(refuse=1, takeover=1),
        batch_max=1,
        open_flushes=1,
    ),
)
"""Searched by `make test-deep`."""
