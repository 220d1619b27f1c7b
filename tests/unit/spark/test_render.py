"""What people see: everything escaped, nothing loaded, no value, a bounded number of findings."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from html.parser import HTMLParser
from io import StringIO

import pytest

from spark.finding_classes import FindingClass
from spark.render import document, page, svg, tables
from spark.report import Minute
from tests.unit.spark.reports import NOON, make_finding, make_report

HOSTILE = '<script>alert("1")</script> =1+1 | `x` [y](javascript:z) \x00\udcff'
SAMPLES = 50


class Tags(HTMLParser):
    """Collects what a browser would meet."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_the_page_is_self_contained_and_has_no_script() -> None:
    tags = Tags(page.to_html(make_report([make_finding()]), SAMPLES))
    assert not {"script", "link", "img", "iframe"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name in ("src", "href", "onclick")]
    assert tags.tags.count("svg") == 1


def test_text_of_others_is_escaped_on_the_page() -> None:
    finding = make_finding(topic=HOSTILE, key=HOSTILE.encode("utf-8", "surrogateescape"))
    text = page.to_html(make_report([finding], show_keys=True), SAMPLES)
    assert "script" not in Tags(text).tags
    assert "&lt;script&gt;" in text


def test_text_of_others_is_no_markup_in_markdown() -> None:
    text = page.to_markdown(make_report([make_finding(topic=HOSTILE)]), SAMPLES)
    assert "\\<script\\>" in text
    assert "[y](" not in text


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
def test_a_class_lists_at_most_its_samples_and_says_how_many_more(count: int) -> None:
    report = make_report([make_finding(n) for n in range(count)])
    text = page.to_html(report, SAMPLES)
    assert Tags(text).tags.count("details") == min(count, SAMPLES)
    assert ("1 more are in the Parquet files" in text) == (count > SAMPLES)


def test_each_finding_comes_with_a_command_to_run() -> None:
    finding = make_finding(finding_class=FindingClass.OVERDUE, message_id=None)
    assert "outbox shard show 3" in page.to_html(make_report([finding]), SAMPLES)


def test_a_key_that_does_not_print_is_escaped() -> None:
    finding = make_finding(key=b"a\x00\xff\n\xe2\x80\xaeb")
    (shown,) = document.document(make_report([finding], show_keys=True), {})["findings"]
    assert shown["key"] == "a\\x00\\xff\\n\\u202eb"


def test_the_json_names_everything_the_contract_asks_for() -> None:
    shown = json.loads(json.dumps(document.document(make_report([make_finding()]), {"html": "x"})))
    assert set(shown) >= {
        *("schema_version", "run_id", "previous_run_id", "verdict", "sentence", "cut", "coverage"),
        *("checked", "in_flight", "totals", "new", "resolved", "findings", "findings_omitted"),
        *("report", "timings"),
    }
    assert (shown["verdict"], shown["totals"]["missing"]) == ("findings", 1)
    assert shown["checked"] == {"committed": 1204113, "records": 1204113}


def test_the_json_is_bounded_and_says_what_it_omits() -> None:
    shown = document.document(make_report([make_finding(n) for n in range(1003)]), {})
    assert (len(shown["findings"]), shown["findings_omitted"]) == (1000, 3)


def test_a_topic_narrows_what_is_shown_and_not_what_is_counted() -> None:
    report = make_report([make_finding(1), make_finding(2, topic="other")])
    shown = document.document(report, {}, ["other"])
    assert [each["topic"] for each in shown["findings"]] == ["other"]
    assert shown["totals"]["missing"] == 2


def test_the_chart_sums_equal_steps_and_loses_nothing() -> None:
    minutes = [
        Minute(minute=NOON + timedelta(minutes=7 * n), committed=n, published=2 * n)
        for n in range(1000)
    ]
    steps = svg.binned(minutes)
    assert len(steps) <= svg.COLUMNS
    assert sum(step.committed for step in steps) == sum(range(1000))
    assert sum(step.published for step in steps) == 2 * sum(range(1000))


def test_a_chart_of_nothing_says_so() -> None:
    assert "No message" in svg.chart([])


def test_a_chart_of_one_minute_is_drawn() -> None:
    assert "<path" in svg.chart([Minute(minute=NOON, committed=3, published=0)])
