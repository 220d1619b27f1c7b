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
    """A shard of the relay; of a halted one ``advice`` and ``commands`` are the way on.

    ``backlog`` counts messages, at most 1 000 flushes deep.
    """

    shard: int
    owner: str | None
    position: int
    backlog: int
    halt_reason: str | None
    advice: str | None
    commands: list[str]
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition; `read_committed` consumers stop at ``last_stable_offset``.

    ``open_since`` is the first record of its open transaction; null also if it cannot be read.
    ``ours``: it is a relay's. If it ``hangs``, it is older than Kafka lets one become; ``command``
    names its producer. A stranger's is only ``suspected`` if nothing but its own record tells its
    age: a young one may copy records of another day.
    """

    topic: str
    partition: int
    end_offset: int
    last_stable_offset: int
    open_since: datetime | None
    ours: bool
    hangs: bool
    suspected: bool
    command: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    """A setting without its secrets, and where its value comes from."""

    setting: str
    value: Any
    source: str


def shard_state(row: Mapping[str, Any]) -> ShardState:
    """Return a shard from its row in the operators' view."""
    halt = None if row["halt_reason"] is None else HaltReason(row["halt_reason"])
    ways = RESOLUTIONS[halt] if halt else ()
    resolve = f"outbox shard resolve {row['shard']}"
    return ShardState(
        **row,
        advice=ADVICE[halt] if halt else None,
        commands=[f"{resolve} --{way} --reason TEXT" for way in ways],
    )
