"""The checkpoint between two runs: the last cut, and what the run left open. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from outbox.messages.message_id import HalfId


class CarriedRow(NamedTuple):
    """One item that a run left open for the next run to judge again; it has no key and no value."""

    side: str
    """The type of the item: commit, record, listing or finding."""
    half_id: HalfId | None
    facts: str
    """A JSON object that only the reconciliation writes and reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """Where the previous run ended; without a ``cut`` the next run reads everything."""

    run_id: str
    cut: Mapping[str, Any] | None
    carried: tuple[CarriedRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointUpdate:
    """The next checkpoint; it is stored in the transaction that stores the run."""

    after: str | None
    """The run whose checkpoint this run continued; None for the first run."""
    cut: Mapping[str, Any] | None
    carried: Sequence[CarriedRow] = ()
    positions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Per shard, the position up to which it is audited: transaction id and place."""
