"""The catalogue of metrics keeps every name, type and label that operators rely on."""

from __future__ import annotations

from math import isnan

from outbox.telemetry.metrics import CATALOGUE, NAMESPACE, UNKNOWN, Metrics
from tests.fixtures_paths import PROJECT

ROW = "| `{name}` | {kind} | {labels} | {help} |\n"


def test_no_label_can_have_a_value_for_each_message() -> None:
    labels = {label for metric in CATALOGUE for label in metric.labels}
    assert not labels & {"message_id", "key", "transaction_id", "trace_id", "path", "offset"}


def test_no_program_claims_a_time_of_an_audit_that_it_does_not_know() -> None:
    registry = Metrics().registry
    for name in UNKNOWN:
        assert isnan(registry.get_sample_value(f"{NAMESPACE}_{name}") or 0.0)


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
