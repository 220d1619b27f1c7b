"""What is worth telling: another verdict, or a critical finding that was not open before."""

from __future__ import annotations

import json

import pytest

from outbox.errors import ConfigurationError
from outbox.reconciliation.stored_run import RunBefore
from outbox.settings.environment import load_settings
from spark.findings.finding_class import FindingClass
from spark.report.notification import critical_ids, news_of
from spark.wiring import webhook
from tests.unit.spark.fixtures_reports import make_finding, make_report

SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
CLEAN, LOST = make_report(), make_report([make_finding(1, key=b"the-key")])
HELD = make_report([make_finding(1, finding_class=FindingClass.HELD)])


def before(verdict: str, *open_before: str) -> RunBefore:
    """Return the run before."""
    return RunBefore(run_id="before", verdict=verdict, open_before=frozenset(open_before))


def test_only_a_change_is_news() -> None:
    known = critical_ids(LOST)
    assert len(known) == 1
    assert news_of(CLEAN, None) is None
    assert news_of(CLEAN, before("clean")) is None
    assert news_of(LOST, before("findings", *known)) is None
    assert news_of(HELD, before("findings")) is None
    for report, earlier in (
        (CLEAN, before("inconclusive")),
        (HELD, None),
        (HELD, before("clean")),
        (LOST, before("findings")),
    ):
        assert news_of(report, earlier) is not None


def test_news_names_runs_and_counts_and_no_message() -> None:
    news = news_of(LOST, before("clean"))
    assert news is not None
    assert (news["previous_verdict"], news["verdict"], news["new_critical"]) == (
        "clean",
        "findings",
        1,
    )
    assert (news["previous_run_id"], news["totals"]["missing"]) == ("before", 1)
    text = json.dumps(news)
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
def test_a_webhook_that_can_never_be_told_is_refused_without_its_url(
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


def test_without_a_url_nobody_is_told() -> None:
    assert webhook(load_settings({})) is None
