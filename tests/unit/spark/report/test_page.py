"""What people see: escaped text, nothing loaded, no value, a bounded number of findings."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from io import StringIO

import pytest

from outbox.reconciliation.finding import REPAIRABLE_CLASSES, FindingChanges
from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from spark.columns.digest import Digest
from spark.cut.cut_plan import Gap
from spark.findings.finding_class import FindingClass, Kind
from spark.report import document, page, svg, tables, trends
from spark.report.report import Latency, Minute
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_past_run, make_report
from tests.unit.spark.report.fixtures_tags import HOSTILE, Tags

SAMPLES = 50


def test_the_page_is_self_contained_and_has_no_script() -> None:
    tags = Tags(page.to_html(make_report([make_finding()]), SAMPLES))
    assert not {"script", "link", "img", "iframe"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name in ("src", "href", "onclick")]
    assert tags.tags.count("svg") == 3


def test_text_of_others_is_escaped_on_the_page() -> None:
    finding = make_finding(topic=HOSTILE, key=HOSTILE.encode("utf-8", "surrogateescape"))
    text = page.to_html(make_report([finding], show_keys=True), SAMPLES)
    assert "script" not in Tags(text).tags
    assert "&lt;script&gt;" in text


def test_no_cell_of_the_csv_is_a_formula() -> None:
    finding = make_finding(topic="=cmd|' /C calc'!A0", key=b"@SUM(1)")
    rows = list(csv.DictReader(StringIO(tables.to_csv(make_report([finding], show_keys=True)))))
    assert (rows[0]["topic"], rows[0]["key"]) == ("'=cmd|' /C calc'!A0", "'@SUM(1)")


def test_keys_are_shown_only_when_asked_for() -> None:
    finding = make_finding(key=b"member-1", key_hash=7)
    (hidden,) = document.document(make_report([finding]), {})["findings"]
    (shown,) = document.document(make_report([finding], show_keys=True), {})["findings"]
    assert (hidden["key"], hidden["key_hash"]) == (None, "0000000000000007")
    assert shown["key"] == "member-1"


@pytest.mark.parametrize("count", [0, 1, 50, 51])
def test_a_class_lists_at_most_its_samples_and_counts_the_others(count: int) -> None:
    report = make_report([make_finding(n) for n in range(count)])
    text = page.to_html(report, SAMPLES)
    assert Tags(text).tags.count("details") == min(count, SAMPLES)
    assert ("1 more are in the Parquet files" in text) == (count > SAMPLES)


def test_each_finding_comes_with_a_command_to_run() -> None:
    finding = make_finding(finding_class=FindingClass.OVERDUE, message_id=None)
    assert "outbox shard show 3" in page.to_html(make_report([finding]), SAMPLES)


@pytest.mark.parametrize("name", REPAIRABLE_CLASSES)
def test_a_repairable_finding_is_missing_or_altered_and_an_altered_one_is_named(
    name: str,
) -> None:
    finding = make_finding(finding_class=FindingClass(name))
    assert finding.rule.kind in (Kind.MISSING, Kind.MISMATCH)
    text = page.to_html(make_report([finding]), SAMPLES)
    named = f"outbox reconcile fix 0123456789abcdef --finding {finding.finding_id}"
    assert (named in text) == (finding.rule.kind is Kind.MISMATCH)


def test_a_key_that_is_not_printable_is_escaped() -> None:
    finding = make_finding(key=b"a\x00\xff\n\xe2\x80\xaeb")
    (shown,) = document.document(make_report([finding], show_keys=True), {})["findings"]
    assert shown["key"] == "a\\x00\\xff\\n\\u202eb"


def test_the_json_has_everything_that_the_contract_requires() -> None:
    shown = json.loads(json.dumps(document.document(make_report([make_finding()]), {"html": "x"})))
    assert set(shown) >= {
        *("schema_version", "run_id", "previous_run_id", "verdict", "sentence", "cut", "coverage"),
        *("checked", "in_flight", "totals", "new", "resolved", "findings", "findings_omitted"),
        *("report", "timings"),
    }
    assert (shown["verdict"], shown["totals"]["missing"]) == ("findings", 1)
    assert shown["checked"] == {"committed": 1204113, "records": 1204113}


def test_the_json_is_bounded_and_counts_what_it_omits() -> None:
    shown = document.document(make_report([make_finding(n) for n in range(1003)]), {})
    assert (len(shown["findings"]), shown["findings_omitted"]) == (1000, 3)


def test_a_topic_limits_what_is_shown_and_not_what_is_counted() -> None:
    report = make_report([make_finding(1), make_finding(2, topic="other")])
    shown = document.document(report, {}, ["other"])
    assert [each["topic"] for each in shown["findings"]] == ["other"]
    assert shown["totals"]["missing"] == 2
    (row,) = csv.DictReader(StringIO(tables.to_csv(report, ["other"])))
    assert row["topic"] == "other"


def test_a_page_for_some_topics_names_them_and_counts_only_their_findings_in_a_section() -> None:
    others = [make_finding(n, topic="other") for n in range(2, 5)]
    accepted = [make_finding(9), make_finding(8, topic="other")]
    report = make_report([make_finding(1), *others], accepted=accepted)
    html = page.to_html(report, 2, ["other"])
    sections = html[html.index("<h2>Findings</h2>") :]
    assert sections.count("</details>") == 2
    assert "1 more are in the Parquet files" in sections
    assert "accepts 1 findings" in sections
    assert "Only findings of other are listed" in html
    assert "Only findings" not in page.to_html(report, 2)


def test_a_topic_that_could_not_be_read_at_all_is_named_without_a_partition() -> None:
    gaps = [
        Gap(partition=Partition("points", WHOLE_TOPIC), reason="gone", finding_class="NOT_READ"),
        Gap(partition=Partition("other", 1), reason="offline", finding_class="NOT_READ"),
    ]
    report = make_report(gaps=gaps)
    html = page.to_html(report, SAMPLES)
    assert "<li>points: gone</li>" in html
    assert "<li>other / 1: offline</li>" in html
    assert "<title>points: not read</title>" in html
    assert "-1" not in trends.coverage_chart(report)


def test_only_a_run_after_another_one_compares_itself_with_it() -> None:
    past = [make_past_run("1", "clean")]
    first = page.to_html(make_report([make_finding()]), SAMPLES)
    assert "no earlier run to compare with" in first
    assert "since the previous run" in page.to_html(make_report(past=past), SAMPLES)


def test_the_chart_sums_equal_steps_and_loses_nothing() -> None:
    minutes = [
        Minute(minute=NOON + timedelta(minutes=7 * n), committed=n, published=2 * n)
        for n in range(1000)
    ]
    steps = svg.binned(minutes)
    assert len(steps) <= svg.COLUMNS
    assert sum(step.committed for step in steps) == sum(range(1000))
    assert sum(step.published for step in steps) == 2 * sum(range(1000))


def test_an_empty_chart_is_replaced_by_a_note() -> None:
    assert "No message" in svg.chart([])


def test_a_chart_of_one_minute_is_drawn() -> None:
    assert "<path" in svg.chart([Minute(minute=NOON, committed=3, published=0)])


def latency(minute: int | None, p99: float, topic: str | None = None) -> Latency:
    """Return percentiles of a minute or of a topic."""
    at = None if minute is None else NOON + timedelta(minutes=minute)
    return Latency(minute=at, topic=topic, messages=10, p50=p99 / 4, p95=p99 / 2, p99=p99)


def test_the_page_says_what_is_new_and_what_has_closed() -> None:
    old, new = make_finding(1), make_finding(2)
    changes = FindingChanges(
        new=1,
        resolved=3,
        unverifiable=4,
        known_ids=frozenset({old.finding_id}),
        closed_by_class={"DUPLICATE": 3},
        unverifiable_by_class={"SKIPPED": 4},
    )
    report = make_report([old, new], changes=changes)
    text = page.to_html(report, SAMPLES)
    changed = text[text.index("<h2>What changed") : text.index("<h2>Counts")]
    assert "1 LOST: the relay recorded the message as published" in changed
    assert "3 DUPLICATE" in changed
    assert "4 SKIPPED: the evidence has expired" in changed
    findings = text[text.index("<h2>Findings") :]
    assert findings.count(">new</span>") == 1


@pytest.mark.parametrize(
    ("digest", "name"), [(Digest.XXH64, "XXH64."), (Digest.SHA256, "XXH64 + SHA-256.")]
)
def test_the_report_names_the_digest_of_the_sample(digest: Digest, name: str) -> None:
    report = make_report(digest=digest)
    text = page.to_html(report, SAMPLES)
    assert f"The contents of the sample were compared by {name}" in text


def test_latency_is_drawn_and_listed_by_topic_and_the_worst_minute_is_kept() -> None:
    minutes = [latency(n, 9.5 if n == 777 else 0.02) for n in range(1000)]
    report = make_report(latencies=[*minutes, latency(None, 0.25, topic=HOSTILE)])
    text = page.to_html(report, SAMPLES)
    assert "99th percentile at most 9.5 s" in text
    assert '<td class="number">250 ms</td>' in text
    assert "script" not in Tags(text).tags
    assert trends.latency_chart(minutes).count("<path") == 3
    assert "<path" not in trends.latency_chart([])


def test_runs_are_bars_in_the_colour_of_their_verdicts() -> None:
    past = [
        make_past_run(str(n), verdict, n)
        for n, verdict in enumerate(("clean", "inconclusive", "findings"))
    ]
    chart = trends.runs_chart(make_report([make_finding()], past=past))
    assert chart.count("<rect") == 4
    assert chart.count('class="findings"') == 2
    assert "open findings over 4 runs, now 1" in chart


def test_coverage_shows_a_cell_per_partition_and_which_were_not_read() -> None:
    gap = Gap(partition=Partition(HOSTILE, 7), reason="offline", finding_class="NOT_READ")
    chart = trends.coverage_chart(make_report(gaps=[gap]))
    assert (chart.count('class="read"'), chart.count('class="unread"')) == (2, 1)
    assert "2 of 3 partitions read to the cut" in chart
    assert "<script" not in chart
