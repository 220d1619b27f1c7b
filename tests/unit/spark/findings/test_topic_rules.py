"""How the rule of a topic changes its findings, and which rules are refused."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.errors import ConfigurationError
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, Severity
from spark.findings.topic_rules import (
    DEFAULT_RULE,
    apply_topic_rule,
    rule_of,
    topic_rules,
)
from tests.unit.spark.fixtures_reports import make_finding

FREE = topic_rules({"points": {"ordered": False}})


def test_only_the_rule_of_the_longest_matching_name_applies() -> None:
    rules = topic_rules({"a.": {"foreign": "low"}, "a.b": {"foreign": "high"}, "a.b.d": {}})
    found = {name: rule_of(name, rules).foreign for name in ("a.a", "a.b.c", "a.b.d", "b")}
    assert found == {"a.a": "low", "a.b.c": "high", "a.b.d": "off", "b": "off"}
    assert rule_of(None, topic_rules({"": {"ordered": False}})) is DEFAULT_RULE


def test_every_member_of_a_rule_is_read() -> None:
    given = {"ordered": False, "foreign": "high", "partitioner": "any"}
    graded = {"LOST/skipped": "high", "LOST": "low"}
    (rule,) = topic_rules({"a.": {**given, "severity": graded}}).values()
    assert (rule.ordered, rule.partitioner) == (False, "any")
    causes = (Cause.LOST_PUBLISHED, Cause.LOST_SKIPPED, Cause.FOREIGN_RECORD)
    assert [rule.severity_of(each) for each in causes] == [
        Severity.LOW,
        Severity.HIGH,
        Severity.HIGH,
    ]


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (2, "Expected `object`"),
        ({"latency": 1}, "Object contains unknown field `latency`"),
        ({"ordered": "no"}, r"Expected `bool`, got `str` - at `\$.ordered`"),
        ({"foreign": "medium"}, r"Invalid enum value 'medium' - at `\$.foreign`"),
        ({"foreign": True}, r"Expected `str`, got `bool` - at `\$.foreign`"),
        ({"partitioner": "crc32"}, r"Invalid enum value 'crc32' - at `\$.partitioner`"),
        ({"severity": "high"}, r"Expected `object`, got `str` - at `\$.severity`"),
        ({"severity": {"LOSS": "high"}}, "severity of 'LOSS', which is not a class"),
        ({"severity": {"LOST": "grave"}}, "Invalid enum value 'grave'"),
    ],
)
def test_an_invalid_rule_is_refused_in_one_line_that_names_it(rule: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^OUTBOX_\w+_TOPIC_RULES: 'a\.': {named}.*$"):
        topic_rules({"a.": rule})


def make(cause: Cause, **fields: Any) -> Finding:
    """Return a finding of that cause on the topic points."""
    return make_finding(cause=cause, **fields)


def test_order_is_not_judged_where_it_does_not_matter() -> None:
    inversion, drift = Cause.ORDER_INVERSION_KEY, Cause.POSITION_DRIFT_HEADER
    assert apply_topic_rule(make(inversion), FREE) is None
    assert apply_topic_rule(make(drift), FREE) == make(drift)
    both = make(inversion, evidence={"behind": "b", "outbox_batch": "3.1.0"})
    assert apply_topic_rule(both, FREE) == make(drift, evidence={"outbox_batch": "3.1.0"})


def test_the_topic_sets_the_severity_of_records_of_other_writers() -> None:
    foreign = make(Cause.FOREIGN_RECORD)
    assert apply_topic_rule(foreign, {}) is None
    assert apply_topic_rule(foreign, topic_rules({"points": {"foreign": "off"}})) is None
    for level, severity in (("low", Severity.LOW), ("high", Severity.HIGH)):
        found = apply_topic_rule(foreign, topic_rules({"points": {"foreign": level}}))
        assert found is not None
        assert found.severity is severity


def test_the_topic_sets_the_severity_of_a_class_until_the_rules_change() -> None:
    mild = apply_topic_rule(
        make(Cause.LOST_PUBLISHED), topic_rules({"points": {"severity": {"LOST": "low"}}})
    )
    assert mild is not None
    assert (mild.severity, mild.graded.severity) == (Severity.LOW, Severity.LOW)
    again = apply_topic_rule(mild, {})
    assert again is not None
    assert again.severity is Severity.CRITICAL
