"""The catalogue of metrics, and their export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, Final, Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from outbox.telemetry.version import installed_version

NAMESPACE: Final = "outbox"


SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)


OVER_WORKERS: Final = "livesum"
"""The multiprocess mode of a gauge per worker: the sum over the living workers."""


UNKNOWN: Final = (
    "reconcile_last_success_timestamp_seconds",
    "reconcile_cut_lag_seconds",
    "reconcile_coverage_ratio",
)
"""What no program knows before the first audit, and most never. 0 would be a claim."""


RECORDS: Final = (1, 10, 50, 100, 250, 500, 1000, 2000, 4096)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of the catalogue; its name gets the prefix ``outbox_``."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS
    over_workers: Literal["all", "livesum"] = "all"
    """The multiprocess mode of a gauge in prometheus_client; ``all`` gives no sum."""


CATALOGUE: Final = (
    Metric(
        "half_messages",
        "gauge",
        "Undecided or unpublished messages; a lower bound if half_messages_capped is 1",
        ("state", "producer_group"),
    ),
    Metric(
        "half_messages_capped",
        "gauge",
        "1 if there are more of these messages than half_messages counts",
        ("state", "producer_group"),
    ),
    Metric(
        "half_oldest_age_seconds", "gauge", "Age of the oldest message", ("state", "producer_group")
    ),
    Metric(
        "parked_messages",
        "gauge",
        "Messages parked undecided, at most 10 000 are counted",
        ("producer_group",),
    ),
    Metric(
        "held_messages",
        "gauge",
        "Committed messages that Kafka refuses or whose row is damaged, or that wait behind such a"
        " one; at most 10 000 are counted",
        ("producer_group", "topic"),
    ),
    Metric(
        "plain_backlog_messages",
        "gauge",
        "Messages published in SQL and committed, not yet admitted; at most 10 000 are counted",
        ("producer_group",),
    ),
    Metric(
        "plain_oldest_age_seconds",
        "gauge",
        "Age of the oldest message not yet admitted",
        ("producer_group",),
    ),
    Metric(
        "publish_backlog_messages",
        "gauge",
        "Committed messages, not yet published; held ones too, dropped ones not; at most 1000 of"
        " a shard are counted",
        ("topic",),
    ),
    Metric("half_prepared_total", "counter", "Prepares stored", ("producer_group", "key_id")),
    Metric(
        "half_ended_total", "counter", "Decisions", ("producer_group", "decision", "decided_by")
    ),
    Metric("half_parked_total", "counter", "Messages parked undecided", ("producer_group",)),
    Metric(
        "end_conflicts_total",
        "counter",
        "Ends that contradict the valid decision",
        ("producer_group", "decision", "decided_by"),
    ),
    Metric(
        "half_resolution_duration_seconds",
        "histogram",
        "Time from prepare to decision",
        ("decision", "decided_by"),
    ),
    Metric(
        "publish_latency_seconds",
        "histogram",
        "Time from decision to acknowledgement, first and last record of each batch",
        ("topic",),
    ),
    Metric(
        "checks_total",
        "counter",
        "Checks by outcome",
        ("producer_group", "outcome"),
    ),
    Metric(
        "check_duration_seconds",
        "histogram",
        "Duration of a check call",
        ("producer_group", "outcome"),
    ),
    Metric("check_inflight", "gauge", "Check calls in flight", ("producer_group",)),
    Metric(
        "check_schedule_lag_seconds", "gauge", "Delay of the oldest due check", ("producer_group",)
    ),
    Metric(
        "check_breaker_state",
        "gauge",
        "0 closed, 1 half-open, 2 open",
        ("producer_group",),
    ),
    Metric(
        "check_failing_seconds",
        "gauge",
        "Time for which every check of a group with waiting messages has failed",
        ("producer_group",),
    ),
    Metric(
        "check_interval_seconds",
        "gauge",
        "Interval of the checks of a group with unfinished messages",
        ("producer_group",),
    ),
    Metric("group_paused", "gauge", "1 for a group whose checks are paused", ("producer_group",)),
    Metric("check_ssrf_blocked_total", "counter", "Checks refused by the SSRF guard", ("rule",)),
    Metric("relay_drops_total", "counter", "Kafka producers dropped by the relay", ("reason",)),
    Metric(
        "relay_halted", "gauge", "1 for a shard that waits for an operator", ("shard", "reason")
    ),
    Metric("relay_replay_seconds", "histogram", "Duration of a takeover of a shard"),
    Metric("relay_batch_records", "histogram", "Records per Kafka transaction", (), RECORDS),
    Metric("relay_commit_seconds", "histogram", "Duration of a Kafka commit"),
    Metric(
        "relay_history_ids_total", "counter", "Message ids that Kafka had and PostgreSQL had lost"
    ),
    Metric("publish_total", "counter", "Published records", ("topic", "producer_group")),
    Metric("publish_errors_total", "counter", "Records that Kafka refused", ("topic", "error")),
    Metric(
        "topic_partitions_added_total", "counter", "Partitions added to a topic in use", ("topic",)
    ),
    Metric("http_requests_total", "counter", "HTTP requests", ("route", "method", "status")),
    Metric(
        "http_request_duration_seconds",
        "histogram",
        "Duration of HTTP requests",
        ("route", "method", "status"),
    ),
    Metric("http_rejected_total", "counter", "HTTP requests refused before the route", ("reason",)),
    Metric("db_pool_in_use", "gauge", "Database connections in use", over_workers=OVER_WORKERS),
    Metric("db_pool_max", "gauge", "Limit of database connections", over_workers=OVER_WORKERS),
    Metric(
        "db_tx_duration_seconds", "histogram", "Duration of database transactions", ("operation",)
    ),
    Metric(
        "table_gauges_unread",
        "gauge",
        "1 for a part of the gauges from the tables that could not be read",
        ("part",),
    ),
    Metric(
        "default_leaf_rows",
        "gauge",
        "1 if a default leaf has rows, outside every planned leaf",
        ("table",),
    ),
    Metric(
        "clock_jumps_total",
        "counter",
        "Times that PostgreSQL's clock was seen to jump by more than a minute",
    ),
    Metric(
        "leaves_waiting",
        "gauge",
        "Leaves kept longer than their retention, by reason",
        ("reason",),
    ),
    Metric(
        "checker_heartbeat_timestamp_seconds",
        "gauge",
        "Last heartbeat of a task of the checker",
        ("task",),
    ),
    Metric("build_info", "gauge", "Always 1", ("version",)),
    Metric(
        "reconcile_last_success_timestamp_seconds",
        "gauge",
        "Time of the last finished reconciliation",
    ),
    Metric("reconcile_discrepancies", "gauge", "Open findings above info, by kind", ("kind",)),
    Metric("reconcile_findings", "gauge", "Open findings", ("kind", "severity", "topic")),
    Metric("reconcile_verdict", "gauge", "1 for the last run's verdict", ("verdict",)),
    Metric(
        "reconcile_inconclusive_runs", "gauge", "Number of last runs in a row without a verdict"
    ),
    Metric("reconcile_cut_lag_seconds", "gauge", "Age of the last run's cut"),
    Metric("reconcile_coverage_ratio", "gauge", "Share of its plan that the last run read"),
)


class Metrics:
    """The catalogue's metrics on a separate registry, by name, beside those of the process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._by_name: dict[str, Any] = {metric.name: self._make(metric) for metric in CATALOGUE}
        for name in UNKNOWN:
            self[name].set(nan)

    def __getitem__(self, name: str) -> Any:
        return self._by_name[name]

    def values(self, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """Yield the labels and the value of each series of a counter of this process."""
        for family in self[name].collect():
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    yield sample.labels, sample.value

    def show_version(self) -> None:
        """Set ``build_info``: the version that this process runs."""
        self["build_info"].labels(installed_version()).set(1)

    def _make(self, metric: Metric) -> Any:
        where: dict[str, Any] = {"namespace": NAMESPACE, "registry": self.registry}
        if metric.kind == "histogram":
            return Histogram(
                metric.name, metric.help, metric.labels, buckets=metric.buckets, **where
            )
        if metric.kind == "gauge":
            where["multiprocess_mode"] = metric.over_workers
            return Gauge(metric.name, metric.help, metric.labels, **where)
        return Counter(metric.name, metric.help, metric.labels, **where)
