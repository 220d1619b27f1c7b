"""Each alert names metrics that there are, and fires exactly when it should."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from outbox.telemetry.metrics import CATALOGUE, NAMESPACE
from tests.fixtures_paths import PROJECT
from tests.unit.docs.fixtures_anchors import anchors

ALERTS = PROJECT / "deploy" / "alerts"
CASES = sorted((PROJECT / "tests/unit/deploy/monitoring/alerts").glob("*.yml"))
CONTRACT = {
    *("OutboxOldestPreparedTooOld", "OutboxParked", "OutboxPublishSlow", "OutboxBacklogGrowing"),
    *("OutboxRelayHalted", "OutboxBreakerOpen", "OutboxCheckerSilent", "OutboxReconcileStale"),
    *("OutboxChecksFailing", "OutboxHeld", "OutboxLost"),
    *("OutboxDiscrepancies", "OutboxCheckBlocked", "OutboxEndConflicts", "OutboxPoolFull"),
    *("OutboxDefaultLeaf", "OutboxApiSilent", "OutboxTableGaugesUnread"),
}
"""The alerts that every installation may rely on."""
PROMTOOL = shutil.which("promtool")


def rules() -> list[dict[str, Any]]:
    """Return every alert of the stack."""
    files = [yaml.safe_load(path.read_text("utf-8")) for path in sorted(ALERTS.glob("*.yml"))]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def test_alerts_speak_of_metrics_and_labels_in_the_catalogue() -> None:
    known = {f"{NAMESPACE}_{metric.name}": set(metric.labels) for metric in CATALOGUE}
    for rule in rules():
        names = [
            name.removesuffix("_bucket") for name in re.findall(rf"{NAMESPACE}_\w+", rule["expr"])
        ]
        assert names, rule["alert"]
        assert set(names) <= set(known)
        for name, matchers in re.findall(r"(\w+)\{([^}]*)\}", rule["expr"]):
            assert set(re.findall(r"(\w+)\s*=", matchers)) <= known[name]
        labels = {"le", "instance"}.union(*(known[name] for name in names))
        for grouped in re.findall(r"\bby \(([^)]*)\)", rule["expr"]):
            assert set(re.split(r",\s*", grouped)) <= labels, rule["alert"]
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= labels


def test_every_alert_of_the_contract_exists_and_has_a_runbook() -> None:
    stored = {rule["alert"]: rule["annotations"].get("runbook_url") for rule in rules()}
    assert stored.keys() >= CONTRACT
    assert all(rule["annotations"]["description"] for rule in rules())
    for runbook in stored.values():
        page, _, anchor = (runbook or "").partition("#")
        assert anchor in anchors(PROJECT / page), runbook


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    found: dict[str, set[bool]] = {}
    for path in CASES:
        for case in yaml.safe_load(path.read_text("utf-8"))["tests"]:
            for asked in case["alert_rule_test"]:
                found.setdefault(asked["alertname"], set()).add(bool(asked["exp_alerts"]))
    assert found == {rule["alert"]: {True, False} for rule in rules()}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (of Prometheus) is not on the PATH")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should(path: Path) -> None:
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
