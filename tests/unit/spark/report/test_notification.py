"""When a notice is sent: another verdict, or a critical finding that was not open before."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from outbox.errors import ConfigurationError
from outbox.reconciliation.finding import FindingChanges
from outbox.settings.environment import load_settings
from spark.findings.finding_class import FindingClass
from spark.report.notification import notice_of
from spark.report.report import Report
from spark.wiring import webhook
from tests.unit.spark.fixtures_reports import make_finding, make_past_run, make_report

SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
CLEAN, LOST = make_report(), make_report([make_finding(1, key=b"the-key")])
HELD = make_report([make_finding(1, finding_class=FindingClass.HELD)])


def after(report: Report, verdict: str, *known_ids: str) -> Report:
    """Return the report after a run with that verdict; the findings with these ids were open."""
    changes = FindingChanges(new=0, resolved=0, known_ids=frozenset(known_ids))
    return replace(report, past=(make_past_run("before", verdict),), changes=changes)


def test_a_notice_is_sent_only_after_a_change() -> None:
    (lost,) = LOST.findings
    for unchanged in (
        CLEAN,
        after(CLEAN, "clean"),
        after(LOST, "findings", lost.finding_id),
        after(HELD, "findings"),
    ):
        assert notice_of(unchanged) is None
    for changed in (
        after(CLEAN, "inconclusive"),
        HELD,
        after(HELD, "clean"),
        after(LOST, "findings"),
    ):
        assert notice_of(changed) is not None


def test_a_notice_contains_runs_and_counts_and_no_message() -> None:
    notice = notice_of(after(LOST, "clean"))
    assert notice is not None
    assert (notice["previous_verdict"], notice["verdict"], notice["new_critical"]) == (
        "clean",
        "findings",
        1,
    )
    assert (notice["previous_run_id"], notice["totals"]["missing"]) == ("before", 1)
    text = json.dumps(notice)
    assert "the-key" not in text
    assert str(LOST.findings[0].message_id) not in text


@pytest.mark.parametrize(
    ("url", "secret", "named"),
    [
        ("https://hooks.example/x", None, "OUTBOX_RECONCILE_WEBHOOK_SECRET"),
        ("https://hooks.example/x", "whsec_!", "secret"),
        ("ftp://hooks.example/x", SECRET, "scheme"),
        ("https://169.254.169.254/x", SECRET, "link-local"),
        ("https://127.0.0.1:5432/x", SECRET, "own-listener"),
        ("http://hooks.example/token-7", SECRET, "plain-http"),
    ],
)
def test_an_unusable_webhook_is_refused_without_showing_its_url(
    url: str, secret: str | None, named: str
) -> None:
    settings = load_settings(
        {"OUTBOX_DATABASE_URL": "postgresql://u@127.0.0.1:5432/d"},
        {"reconcile_webhook_url": url} | ({"reconcile_webhook_secret": secret} if secret else {}),
    )
    with pytest.raises(ConfigurationError, match=named) as refused:
        webhook(settings)
    assert url not in str(refused.value)
    assert str(secret) not in str(refused.value)


def test_without_a_url_no_notice_is_sent() -> None:
    assert webhook(load_settings({})) is None
