"""What people see: escaped text, nothing loaded, no value, a bounded number of findings."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import timedelta
from io import StringIO

from spark.findings.finding_class import Cause, Place
from spark.report import document, page, tables
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_past_run, make_report
from tests.unit.spark.report.fixtures_tags import Tags

SAMPLES = 50


def test_what_to_do_first_is_at_the_top_and_each_count_leads_to_its_findings() -> None:
    causes = (Cause.DUPLICATE_REDRIVEN, Cause.UNPUBLISHED_HELD, Cause.LOST_PUBLISHED)
    found = [make_finding(n, cause=each) for n, each in enumerate(causes)]
    attributes = Tags(page.to_html(make_report(found), SAMPLES)).attributes
    links = [value for name, value in attributes if name == "href"]
    assert links[:2] == ["#LOST/published-critical", "#UNPUBLISHED/held-medium"]
    assert links[2:] == ["#LOST/published-critical"] * 2  # what is missing, by topic and by group
    assert {("id", link[1:]) for link in links if link} <= set(attributes)


def test_no_cell_of_the_csv_is_a_formula() -> None:
    finding = make_finding(topic="=cmd|' /C calc'!A0", key=b"@SUM(1)")
    rows = list(csv.DictReader(StringIO(tables.to_csv(make_report([finding], show_keys=True)))))
    assert (rows[0]["topic"], rows[0]["key"]) == ("'=cmd|' /C calc'!A0", "'@SUM(1)")


def test_keys_are_shown_only_when_asked_for_and_what_is_not_printable_is_escaped() -> None:
    finding = make_finding(key=b"a\x00\xff\n\xe2\x80\xaeb", key_hash=7)
    (hidden,) = document.document(make_report([finding]), {})["findings"]
    (shown,) = document.document(make_report([finding], show_keys=True), {})["findings"]
    assert (hidden["key"], hidden["key_hash"]) == (None, "0000000000000007")
    assert shown["key"] == "a\\x00\\xff\\n\\u202eb"


def test_the_json_says_what_to_do_first_why_everything_was_read_and_how_long_it_took() -> None:
    lost, ended = make_finding(producer_group="billing"), NOON + timedelta(hours=1)
    read = {"committed": 9, "records": 8, "lag": 1}
    places = {Place("points", "billing"): read, Place("points", "shop"): read}
    report = make_report([lost], spans={lost.graded: (NOON, ended)}, read=places)
    shown = document.document(replace(report, findings=()), {})
    (first,) = shown["do_first"]
    assert (first["class"], first["detail"], first["findings"]) == ("LOST", "published", 1)
    assert first["last"] == ended.isoformat()
    assert first["command"] == "outbox reconcile show 0123456789abcdef"  # no LOST one is kept
    assert (shown["full_because"], shown["duration_seconds"]) == ("the first run", 12.5)
    (topic,), groups = shown["topics"], shown["producer_groups"]
    assert topic == {"topic": "points", "missing": 1, "duplicate": 0} | {
        n: 2 * read[n] for n in read
    }
    assert [(each["records"], each["missing"]) for each in groups] == [(8, 1), (8, 0)]


def test_the_json_is_bounded_and_counts_what_it_omits() -> None:
    shown = document.document(make_report([make_finding(n) for n in range(1003)]), {})
    assert (len(shown["findings"]), shown["findings_omitted"]) == (1000, 3)


def test_only_a_run_after_another_one_compares_itself_with_it() -> None:
    first = page.to_html(make_report([make_finding()]), SAMPLES)
    assert "no earlier run to compare with" in first
    assert "since the previous run" in page.to_html(
        make_report(previous=make_past_run("1", "clean")), SAMPLES
    )


def test_places_are_a_table() -> None:
    places = [{"topic": "points", "offset": 5}, {"topic": "points", "offset": 9}]
    twice = make_finding(cause=Cause.DUPLICATE_REPEATED, evidence={"places": places})
    text = page.to_html(make_report([twice]), SAMPLES)
    assert "<th>offset</th>" in text
    assert "{" not in text[text.index("<h2>Findings") :]
