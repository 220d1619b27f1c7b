"""Every metric, once, and how each is exported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client import Metric as Family
from prometheus_client.registry import Collector

NAMESPACE: Final = "outbox"


SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)


OVER_WORKERS: Final = "livesum"
"""How several workers' gauges become one where each tells of itself: the sum of the living."""


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
    """Of a gauge: prometheus_client's mode; ``all`` is not summed up."""
    told: bool = False
    """Its values stand in a table: it shows what it was told last, and nothing before."""


CATALOGUE: Final = (
    Metric(
        "half_messages", "gauge", "Undecided or unpublished messages", ("state", "producer_group")
    ),
    Metric(
        "half_oldest_age_seconds", "gauge", "Age of the oldest one", ("state", "producer_group")
    ),
    Metric("parked_messages", "gauge", "Messages set aside undecided", ("producer_group",)),
    Metric(
        "plain_backlog_messages",
        "gauge",
        "Published in SQL and committed, not yet admitted",
        ("producer_group",),
    ),
    Metric("plain_oldest_age_seconds", "gauge", "Age of the oldest one", ("producer_group",)),
    Metric("publish_backlog_messages", "gauge", "Committed, not yet published", ("topic",)),
    Metric("half_prepared_total", "counter", "Half messages stored", ("producer_group",)),
    Metric(
        "half_ended_total", "counter", "Decisions", ("producer_group", "decision", "decided_by")
    ),
    Metric(
        "end_conflicts_total",
        "counter",
        "Ends against the standing decision",
        ("producer_group", "decision", "decided_by"),
    ),
    Metric(
        "half_resolution_duration_seconds",
        "histogram",
        "Prepare to decision",
        ("decision", "decided_by"),
    ),
    Metric(
        "publish_latency_seconds",
        "histogram",
        "Decision to acknowledgement, of the first and the last record of each batch",
        ("topic",),
    ),
    Metric("checks_total", "counter", "Checks by what came back", ("producer_group", "outcome")),
    Metric("check_duration_seconds", "histogram", "One check call", ("producer_group", "outcome")),
    Metric("check_inflight", "gauge", "Checks on the wire", ("producer_group",)),
    Metric("check_schedule_lag_seconds", "gauge", "Oldest overdue check", ("producer_group",)),
    Metric(
        "check_breaker_state",
        "gauge",
        "0 closed, 1 half-open, 2 open: the endpoint keeps failing",
        ("producer_group",),
    ),
    Metric("check_ssrf_blocked_total", "counter", "Checks refused by the guard", ("rule",)),
    Metric("relay_drops_total", "counter", "Kafka handles given up", ("reason",)),
    Metric("relay_halted", "gauge", "Shards that wait for an operator", ("shard", "reason")),
    Metric("relay_replay_seconds", "histogram", "Taking a shard over"),
    Metric("relay_batch_records", "histogram", "Records per Kafka transaction", (), RECORDS),
    Metric("relay_commit_seconds", "histogram", "Ending a Kafka transaction"),
    Metric("relay_history_ids_total", "counter", "Ids Kafka had and PostgreSQL had forgotten"),
    Metric("publish_total", "counter", "Records published", ("topic",)),
    Metric("publish_errors_total", "counter", "Failed publishes", ("topic", "error")),
    Metric("http_requests_total", "counter", "Requests", ("route", "method", "status")),
    Metric("http_request_duration_seconds", "histogram", "Requests", ("route", "method", "status")),
    Metric("http_rejected_total", "counter", "Requests refused before the route", ("reason",)),
    Metric("db_pool_in_use", "gauge", "Connections in use", over_workers=OVER_WORKERS),
    Metric("db_pool_max", "gauge", "Connections at most", over_workers=OVER_WORKERS),
    Metric("db_tx_duration_seconds", "histogram", "Database transactions", ("operation",)),
    Metric("default_leaf_rows", "gauge", "Rows outside every planned leaf", ("table",)),
    Metric(
        "leaves_waiting",
        "gauge",
        "Leaves kept beyond their retention, by what they wait for",
        ("reason",),
    ),
    Metric("checker_heartbeat_timestamp_seconds", "gauge", "Last beat of a chore", ("chore",)),
    Metric("build_info", "gauge", "Always 1", ("version", "commit")),
    Metric("reconcile_last_success_timestamp_seconds", "gauge", "Last finished reconciliation"),
    Metric("reconcile_discrepancies", "gauge", "Open discrepancies", ("kind",)),
    Metric("reconcile_findings", "gauge", "Open findings", ("kind", "severity", "topic")),
    Metric("reconcile_verdict", "gauge", "1 for the last run's verdict", ("verdict",)),
    Metric("reconcile_inconclusive_runs", "gauge", "Last runs in a row without a verdict"),
    Metric("reconcile_new_total", "counter", "Findings that were new", ("kind",), told=True),
    Metric("reconcile_resolved_total", "counter", "Findings that ended", ("kind",), told=True),
    Metric(
        "reconcile_dirty_bucket_ratio", "gauge", "Ranges that differed in the last run", told=True
    ),
    Metric("reconcile_cut_lag_seconds", "gauge", "Age of the last run's cut"),
    Metric("reconcile_coverage_ratio", "gauge", "How much of its plan the last run read"),
    Metric("reconcile_messages_checked", "gauge", "What the last run judged", ("side",)),
    Metric(
        "reconcile_publish_latency_seconds",
        "gauge",
        "Commit to record in the last run's sample",
        ("topic", "quantile"),
    ),
    Metric("reconcile_duration_seconds", "gauge", "Stages of the last run", ("stage",)),
)


class SnapshotMetric(Collector):
    """A metric whose values stand in a table, where this process is not the one that counts."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._values: dict[tuple[str, ...], float] = {}

    def tell(self, value: float | None, *labels: str) -> None:
        """Replace the value of these labels; None takes it away."""
        if value is None:
            self._values.pop(labels, None)
        else:
            self._values[labels] = value

    def collect(self) -> Iterable[Family]:
        """Yield what was told last; for the registry."""
        metric, name = self._metric, f"{NAMESPACE}_{self._metric.name}"
        family = Family(name.removesuffix("_total"), metric.help, metric.kind)
        for labels, value in list(self._values.items()):
            family.add_sample(name, dict(zip(metric.labels, labels, strict=True)), value)
        yield family

    def describe(self) -> Iterable[Family]:
        """Name the metric; for the registry, which refuses a second one of its name."""
        return self.collect()


class Metrics:
    """The catalogue's metrics on a registry of their own, read by name."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._by_name: dict[str, Any] = {metric.name: self._make(metric) for metric in CATALOGUE}

    def __getitem__(self, name: str) -> Any:
        return self._by_name[name]

    def _make(self, metric: Metric) -> Any:
        where: dict[str, Any] = {"namespace": NAMESPACE, "registry": self.registry}
        if metric.told:
            told = SnapshotMetric(metric)
            self.registry.register(told)
            return told
        if metric.kind == "histogram":
            return Histogram(
                metric.name, metric.help, metric.labels, buckets=metric.buckets, **where
            )
        if metric.kind == "gauge":
            where["multiprocess_mode"] = metric.over_workers
            return Gauge(metric.name, metric.help, metric.labels, **where)
        return Counter(metric.name, metric.help, metric.labels, **where)
