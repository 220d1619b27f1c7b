"""What people see of the settings of libraries: a property that is named as a secret is hidden."""

from __future__ import annotations

import json

import pytest

from outbox.operators.shown_settings import shown_settings
from outbox.settings.environment import load_settings
from outbox.telemetry.redaction import HIDDEN


def shown(name: str, value: object) -> object:
    """Return what is shown of one property of Spark."""
    settings = load_settings({"OUTBOX_RECONCILE_SPARK_CONF": json.dumps({name: value})})
    found = {each.setting: each.value for each in shown_settings(settings, {})}
    properties: dict[str, object] = found["OUTBOX_RECONCILE_SPARK_CONF"]
    return properties[name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.authenticate.secret", "pa55word"),
        ("spark.authenticate.secret", 77123456789),
        ("spark.hadoop.fs.azure.sas.reports.account.blob.core.windows.net", "sv=1&sig=pa55word"),
    ],
)
def test_a_secret_is_hidden_whatever_its_form(name: str, value: object) -> None:
    assert shown(name, value) == HIDDEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.shuffle.partitions", 200),
        ("spark.kafka.sasl.mechanism", "PLAIN"),
        ("spark.hadoop.bypass.checks", True),
    ],
)
def test_every_other_property_is_shown(name: str, value: object) -> None:
    assert shown(name, value) == value
