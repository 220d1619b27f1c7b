"""The report in Chinese: nothing that a person reads is left in English."""

from __future__ import annotations

import re
import string
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from spark.cut import late_arrivals
from spark.findings import verdict
from spark.findings.finding_class import RULES, Kind, Severity
from spark.report import page, report
from spark.report.language import ENGLISH, Language, words_of
from tests.unit.spark.fixtures_reports import make_finding, make_report

ZH: Final = words_of(Language.ZH)
SPARK: Final = Path(page.__file__).parents[1]
CONSTANTS: Final = {
    *(report.VERDICT, report.COVERED, page.CHANGED),
    *(late_arrivals.MISSED, late_arrivals.AGAIN),
}
CALL: Final = re.compile(r'\bt\(\s*"((?:[^"\\]|\\.)*)"')


def texts() -> set[str]:
    """Return every text that the code and the templates say in words."""
    sources = [*SPARK.rglob("*.py"), *SPARK.rglob("*.j2")]
    called = {text for each in sources for text in CALL.findall(each.read_text("utf-8"))}
    rules = {text for rule in RULES.values() for text in (rule.meaning, rule.action)}
    names = {each.value for each in (*Kind, *verdict.Verdict)}
    names |= {each.name.lower() for each in Severity}
    return called | rules | names | CONSTANTS


def test_every_text_of_the_report_has_a_translation() -> None:
    assert not texts() - ZH.known.keys()


@pytest.mark.parametrize("text", sorted(ZH.known))
def test_a_translation_tells_the_same_facts(text: str) -> None:
    assert _places(ZH.known[text]) == _places(text)


def test_the_page_is_chinese_but_for_names_commands_and_evidence() -> None:
    said = replace(make_report([make_finding()]), language=Language.ZH)
    html, markdown = page.to_html(said, 50), page.to_markdown(said, 50)
    assert '<html lang="zh">' in html
    for text in (html, markdown):
        assert said.told(ZH) in text
        assert "outbox reconcile fix" in text
        left = [each for each in ZH.known if " " in each and "{" not in each and each in text]
        assert not left


def test_what_has_no_translation_is_said_in_english() -> None:
    assert ZH("shard 5 began anew") == "shard 5 began anew"
    assert ENGLISH("full run: {reason}", reason="{odd}") == "full run: {odd}"


def _places(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)
