"""What people see: escaped text, nothing loaded, no value, a bounded number of findings."""

from __future__ import annotations

import csv
import json
from io import StringIO

from spark.findings.finding_class import FindingClass
from spark.report import document, page, tables
from tests.unit.spark.fixtures_reports import make_finding, make_past_run, make_report
from tests.unit.spark.report.fixtures_tags import HOSTILE, Tags

SAMPLES = 50


def test_the_page_is_self_contained_and_has_no_script() -> None:
    tags = Tags(page.to_html(make_report([make_finding()]), SAMPLES))
    assert not {"script", "link", "img", "iframe"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name in ("src", "href", "onclick")]


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


def test_each_finding_comes_with_a_command_to_run() -> None:
    finding = make_finding(finding_class=FindingClass.OVERDUE, message_id=None)
    assert "outbox shard show 3" in page.to_html(make_report([finding]), SAMPLES)


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


def test_only_a_run_after_another_one_compares_itself_with_it() -> None:
    first = page.to_html(make_report([make_finding()]), SAMPLES)
    assert "no earlier run to compare with" in first
    assert "since the previous run" in page.to_html(
        make_report(previous=make_past_run("1", "clean")), SAMPLES
    )


def test_places_are_a_table_and_a_finding_of_a_group_names_it() -> None:
    places = [{"topic": "points", "offset": 5}, {"topic": "points", "offset": 9}]
    twice = make_finding(finding_class=FindingClass.DUPLICATE, detail={"places": places})
    group = {"message_id": None, "topic": None, "shard": None, "producer_group": "billing"}
    silent = make_finding(2, finding_class=FindingClass.CHECK_SILENT, **group)
    text = page.to_html(make_report([twice, silent]), SAMPLES)
    assert "<th>offset</th>" in text
    assert "{" not in text[text.index("<h2>Findings") :]
    assert "<summary>group billing" in text
