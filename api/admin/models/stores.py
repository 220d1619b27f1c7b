"""The wire models of the installation: shards, partitions, health checks, settings."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from api.admin.models.page import Rows
from outbox.operators.health_check import HealthStatus
from outbox.operators.store_view import ShownSetting


class ShardResource(BaseModel):
    """A shard of the relay; of a halted one ``advice`` and ``commands`` are the way on."""

    shard: int
    owner: str | None
    position: int
    backlog: int
    halt_reason: str | None
    advice: str | None
    commands: list[str]
    updated_at: datetime | None


class ShardList(Rows[ShardResource]):
    """Every shard, by number."""


class PartitionResource(BaseModel):
    """A partition; `read_committed` consumers stop at ``last_stable_offset``.

    ``open_since`` is the first record of its open transaction. If it ``hangs``, it is older than
    Kafka lets one become; ``command`` names its producer. A stranger's is only ``suspected``
    if nothing but its own record tells its age: a young one may copy records of another day.
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


class PartitionList(Rows[PartitionResource]):
    """The partitions of all topics that had messages, by topic and number."""


class HealthCheckResource(BaseModel):
    """A check of the installation; ``command`` is what to run next, if one command helps."""

    check: str
    verdict: HealthStatus
    detail: str
    command: str | None


class HealthReport(Rows[HealthCheckResource]):
    """The checks of both stores."""


class SettingList(Rows[ShownSetting]):
    """Every setting of the process that answers."""
