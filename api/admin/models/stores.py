"""The lists of the installation: shards, partitions, health checks, settings."""

from __future__ import annotations

from api.admin.models.page import Rows
from outbox.operators.health_check import HealthCheck
from outbox.operators.store_view import PartitionState, ShardState, ShownSetting


class ShardList(Rows[ShardState]):
    """Every shard, by number."""


class PartitionList(Rows[PartitionState]):
    """The partitions of all topics that had messages, by topic and number."""


class HealthReport(Rows[HealthCheck]):
    """The checks of both stores."""


class SettingList(Rows[ShownSetting]):
    """Every setting of the process that answers."""
