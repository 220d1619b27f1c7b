"""The catalogue of metrics keeps every name, type and label that operators rely on."""

from __future__ import annotations

from outbox.telemetry.metrics import CATALOGUE, NAMESPACE, Metrics
from tests.fixtures_paths import PROJECT

GROUP = ("producer_group",)
DECIDED = ("decision", "decided_by")
PROMISED = {
    ("gauge", ("state", "producer_group")): "half_messages half_messages_capped"
    " half_oldest_age_seconds",
    ("gauge", GROUP): "parked_messages check_inflight check_schedule_lag_seconds"
    " check_breaker_state",
    ("gauge", ("topic",)): "publish_backlog_messages",
    ("gauge", ()): "kafka_queue_messages db_pool_in_use db_pool_max"
    " reconcile_last_success_timestamp_seconds reconcile_cut_lag_seconds"
    " reconcile_coverage_ratio reconcile_dirty_bucket_ratio",
    ("counter", GROUP): "half_prepared_total half_parked_total",
    ("counter", (*GROUP, *DECIDED)): "half_ended_total end_conflicts_total",
    ("histogram", DECIDED): "half_resolution_duration_seconds",
    ("histogram", ("topic",)): "publish_latency_seconds",
    ("counter", (*GROUP, "outcome")): "checks_total",
    ("histogram", (*GROUP, "outcome")): "check_duration_seconds",
    ("counter", ("reason",)): "relay_drops_total http_rejected_total",
    ("gauge", ("shard", "reason")): "relay_halted",
    ("histogram", ()): "relay_replay_seconds relay_batch_records relay_commit_seconds",
    ("counter", ()): "relay_history_ids_total",
    ("counter", ("rule",)): "check_ssrf_blocked_total",
    ("counter", ("topic", "producer_group")): "publish_total",
    ("counter", ("topic", "error")): "publish_errors_total",
    ("counter", ("route", "method", "status")): "http_requests_total",
    ("histogram", ("route", "method", "status")): "http_request_duration_seconds",
    ("histogram", ("operation",)): "db_tx_duration_seconds",
    ("gauge", ("table",)): "op_table_rows last_vacuum_timestamp_seconds",
    ("gauge", ("part",)): "table_gauges_unread",
    ("gauge", ("chore",)): "checker_heartbeat_timestamp_seconds",
    ("gauge", ("version", "commit")): "build_info",
    ("gauge", ("kind",)): "reconcile_discrepancies",
    ("gauge", ("kind", "severity", "topic")): "reconcile_findings",
    ("counter", ("kind",)): "reconcile_new_total reconcile_resolved_total",
    ("gauge", ("stage",)): "reconcile_duration_seconds",
    ("gauge", ("verdict",)): "reconcile_verdict",
    ("gauge", ("topic", "quantile")): "reconcile_publish_latency_seconds",
}
"""What the contract of the service names: type and labels, then the names without prefix."""
ROW = "| `{name}` | {kind} | {labels} | {help} |\n"


def test_every_promised_metric_exists_with_its_type_and_labels() -> None:
    stored = {metric.name: (metric.kind, metric.labels) for metric in CATALOGUE}
    promised = {
        name: (kind, labels) for (kind, labels), names in PROMISED.items() for name in names.split()
    }
    assert {name: stored.get(name) for name in promised} == promised


def test_no_label_can_have_a_value_for_each_message() -> None:
    labels = {label for metric in CATALOGUE for label in metric.labels}
    assert not labels & {"message_id", "key", "transaction_id", "trace_id", "path", "offset"}


def test_each_metric_is_exported_with_its_help() -> None:
    metrics = Metrics()
    exported = {family.name: family for family in metrics.registry.collect()}
    for metric in CATALOGUE:
        family = exported[f"{NAMESPACE}_{metric.name.removesuffix('_total')}"]
        assert (family.type, family.documentation) == (metric.kind, metric.help)


def test_the_page_of_metrics_equals_the_catalogue() -> None:
    table = "".join(
        ROW.format(
            name=f"{NAMESPACE}_{metric.name}",
            kind=metric.kind,
            labels=", ".join(f"`{label}`" for label in metric.labels) or "–",
            help=metric.help,
        )
        for metric in CATALOGUE
    )
    assert table in (PROJECT / "docs" / "reference" / "metrics.md").read_text("utf-8")
