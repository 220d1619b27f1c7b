"""What operators see of the whole installation: shards, partitions, health, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outbox.relay.halt_resolution import ADVICE, RESOLUTIONS
from outbox.relay.protocol.state import HaltReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardState:
    """One shard of the relay; ``backlog`` counts messages, at most 1 000 flushes deep."""

    shard: int
    owner: str | None
    position: int
    backlog: int
    halt_reason: str | None
    updated_at: datetime | None

    @property
    def advice(self) -> str | None:
        """What the reason of the halt means; None if the shard is not halted."""
        return None if self.halt_reason is None else ADVICE[HaltReason(self.halt_reason)]

    @property
    def commands(self) -> list[str]:
        """The commands that resolve the halt, the first one first."""
        if self.halt_reason is None:
            return []
        ways = RESOLUTIONS[HaltReason(self.halt_reason)]
        return [f"outbox shard resolve {self.shard} --{way} --reason TEXT" for way in ways]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition of a topic that had messages; its offsets are the next ones to write and to read.

    ``open_since`` is when the first open transaction wrote its first record; None if none is open,
    or if that record could not be read. ``ours``: the transaction is a relay's.
    ``suspected``: only its own record says that it hangs. ``command`` looks further at it.
    """

    topic: str
    partition: int
    end_offset: int
    last_stable_offset: int
    open_since: datetime | None = None
    ours: bool = False
    hangs: bool = False
    suspected: bool = False
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    """A setting without its secrets, and where its value comes from."""

    setting: str
    value: Any
    source: str


def shard_state(row: Mapping[str, Any]) -> ShardState:
    """Return a shard from its row in the operators' view."""
    names = ("shard", "owner", "position", "backlog", "halt_reason", "updated_at")
    return ShardState(**{name: row[name] for name in names})
