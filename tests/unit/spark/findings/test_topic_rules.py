"""How the rule of a topic changes its findings, and which rules are refused."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.errors import ConfigurationError
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, Severity
from spark.findings.topic_rules import (
    DEFAULT_RULE,
    LatencyTarget,
    TopicRule,
    apply_topic_rule,
    latency_targets,
    rule_of,
    topic_rules,
)
from tests.unit.spark.fixtures_reports import make_finding

FREE = topic_rules({"points": {"ordered": False}})


def test_only_the_rule_of_the_longest_matching_name_applies() -> None:
    given = {"a.": {"latency_p99_seconds": 1}, "a.b": {"latency_p99_seconds": 2.5}, "a.b.d": {}}
    rules = topic_rules({**given, "z": {"latency_p99_seconds": 3, "latency_minutes": 9}})
    assert latency_targets(["a.a", "a.b.c", "a.b.d", "b", "z"], rules) == {
        "a.a": LatencyTarget(p99_seconds=1.0, minutes=5),
        "a.b.c": LatencyTarget(p99_seconds=2.5, minutes=5),
        "z": LatencyTarget(p99_seconds=3.0, minutes=9),
    }
    assert rule_of("b", rules) == rule_of(None, topic_rules({"": {"ordered": False}}))
    assert rule_of("b", rules) is DEFAULT_RULE


def test_every_member_of_a_rule_is_read() -> None:
    given = {"ordered": False, "foreign": "high", "partitioner": "any"}
    graded = {"LOST/skipped": "high", "LOST": "low"}
    (rule,) = topic_rules({"a.": {**given, "severity": graded}}).values()
    severities = {Cause.LOST_PUBLISHED: Severity.LOW, Cause.LOST_SKIPPED: Severity.HIGH}
    assert rule == TopicRule(
        ordered=False, foreign=Severity.HIGH, keyed=False, severities=severities
    )
    (same,) = topic_rules(
        {"a.": {"ordered": True, "foreign": "off", "partitioner": "murmur2"}}
    ).values()
    assert same == DEFAULT_RULE


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (2, "is not an object"),
        ({"latency_minutes": 5}, "latency_minutes needs latency_p99_seconds"),
        ({"latency_p99_seconds": 0}, "latency_p99_seconds must be above 0"),
        ({"latency_p99_seconds": "2"}, "latency_p99_seconds must be above 0"),
        ({"latency_p99_seconds": True}, "latency_p99_seconds must be above 0"),
        (
            {"latency_p99_seconds": 2, "latency_minutes": 0},
            "latency_minutes must be a whole number",
        ),
        (
            {"latency_p99_seconds": 2, "latency_minutes": 1.5},
            "latency_minutes must be a whole number",
        ),
        ({"latency_p99_seconds": 2, "latency": 1}, "has an unknown member 'latency'"),
        ({"ordered": "no"}, "ordered must be true or false"),
        ({"foreign": "medium"}, "foreign must be one of off, low, high"),
        ({"foreign": True}, "foreign must be one of off, low, high"),
        ({"partitioner": "crc32"}, "partitioner must be one of murmur2, any"),
        ({"severity": "high"}, "severity must be an object"),
        ({"severity": {"LOSS": "high"}}, "severity of 'LOSS', which is not a class"),
        ({"severity": {"LOST": "grave"}}, "severity of LOST must be one of info, low"),
        ({"severity": {"LOST": 3}}, "severity of LOST must be one of info, low"),
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
