"""The wire models of the installation: shards, partitions, health checks, settings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from api.admin.models.page import Rows
from outbox.operators.health_check import HealthStatus


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


class RateSeriesResource(BaseModel):
    """Messages of each minute, the oldest first: prepared, committed, published, or checks."""

    name: str
    counts: list[int]


class GroupRateResource(BaseModel):
    """What a group did in the last hour: messages, and checks by outcome."""

    producer_group: str
    counts: dict[str, int]


class OutcomeCountResource(BaseModel):
    """The checks with an outcome: ``live`` ones of the last five minutes, all of a ``day``."""

    outcome: str
    live: int
    day: int


class RateList(BaseModel):
    """What the last hour did; its first minute began at ``begins_at``.

    ``groups`` are those with most messages, ``check_outcomes`` counts the checks of the last day.
    Each process adds what it did every five seconds, so the figures are that late.
    """

    begins_at: datetime | None
    data: list[RateSeriesResource]
    groups: list[GroupRateResource]
    check_outcomes: list[OutcomeCountResource]


class HealthCheckResource(BaseModel):
    """A check of the installation; ``command`` is what to run next, if one command helps."""

    check: str
    verdict: HealthStatus
    detail: str
    command: str | None


class HealthReport(Rows[HealthCheckResource]):
    """The checks of both stores."""


class SettingResource(BaseModel):
    """A setting; secrets are hidden."""

    setting: str
    value: Any
    source: str


class SettingList(Rows[SettingResource]):
    """Every setting of the process that answers."""
