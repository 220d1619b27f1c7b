"""What a topic's rule says of its findings, and which rules are refused."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.errors import ConfigurationError
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass, Severity
from spark.findings.topic_rules import (
    AS_EVERYWHERE,
    LatencyTarget,
    TopicRule,
    rule_of,
    ruled,
    targets_of,
    topic_rules,
)
from tests.unit.spark.fixtures_reports import make_finding

C = FindingClass
FREE = topic_rules({"points": {"ordered": False}})
ANYWHERE = topic_rules({"points": {"partitioner": "any"}})


def test_the_longest_name_that_fits_a_topic_counts_and_counts_alone() -> None:
    given = {"a.": {"latency_p99_seconds": 1}, "a.b": {"latency_p99_seconds": 2.5}, "a.b.d": {}}
    rules = topic_rules({**given, "z": {"latency_p99_seconds": 3, "latency_minutes": 9}})
    assert targets_of(["a.a", "a.b.c", "a.b.d", "b", "z"], rules) == {
        "a.a": LatencyTarget(p99_seconds=1.0, minutes=5),
        "a.b.c": LatencyTarget(p99_seconds=2.5, minutes=5),
        "z": LatencyTarget(p99_seconds=3.0, minutes=9),
    }
    assert rule_of("b", rules) == rule_of(None, topic_rules({"": {"ordered": False}}))
    assert rule_of("b", rules) is AS_EVERYWHERE


def test_a_rule_is_read_whole() -> None:
    given = {"ordered": False, "foreign": "high", "partitioner": "any"}
    (rule,) = topic_rules({"a.": {**given, "severity": {"HELD": "low"}}}).values()
    assert rule == TopicRule(
        ordered=False, foreign=Severity.HIGH, keyed=False, severities={C.HELD: Severity.LOW}
    )
    (same,) = topic_rules(
        {"a.": {"ordered": True, "foreign": "off", "partitioner": "murmur2"}}
    ).values()
    assert same == AS_EVERYWHERE


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (2, "is no object"),
        ({"latency_minutes": 5}, "latency_minutes needs latency_p99_seconds"),
        ({"latency_p99_seconds": 0}, "latency_p99_seconds is not above 0"),
        ({"latency_p99_seconds": "2"}, "latency_p99_seconds is not above 0"),
        ({"latency_p99_seconds": True}, "latency_p99_seconds is not above 0"),
        ({"latency_p99_seconds": 2, "latency_minutes": 0}, "latency_minutes is no whole number"),
        ({"latency_p99_seconds": 2, "latency_minutes": 1.5}, "latency_minutes is no whole number"),
        ({"latency_p99_seconds": 2, "latency": 1}, "knows no 'latency'"),
        ({"ordered": "no"}, "ordered is neither true nor false"),
        ({"foreign": "medium"}, "foreign is none of off, low, high"),
        ({"foreign": True}, "foreign is none of off, low, high"),
        ({"partitioner": "crc32"}, "partitioner is none of murmur2, any"),
        ({"severity": "high"}, "severity is no object"),
        ({"severity": {"LOSS": "high"}}, "severity of 'LOSS', which is no class"),
        ({"severity": {"LOST": "grave"}}, "severity of LOST is none of info, low"),
        ({"severity": {"LOST": 3}}, "severity of LOST is none of info, low"),
    ],
)
def test_a_rule_that_is_not_understood_is_refused_by_name_in_one_line(
    rule: Any, named: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^OUTBOX_\w+_TOPIC_RULES: 'a\.': {named}.*$"):
        topic_rules({"a.": rule})


def make(finding_class: FindingClass, **fields: Any) -> Finding:
    """Return a finding of that class on the topic points."""
    return make_finding(finding_class=finding_class, **fields)


@pytest.mark.parametrize("finding_class", [each for each in FindingClass if each is not C.FOREIGN])
def test_without_a_rule_a_finding_stays_as_it_is(finding_class: FindingClass) -> None:
    finding = make(finding_class)
    assert ruled(finding, {}) == finding
    assert ruled(finding, topic_rules({"other": {"ordered": False}})) == finding


def test_order_is_not_judged_where_it_does_not_matter() -> None:
    assert ruled(make(C.ORDER_INVERSION), FREE) is None
    assert ruled(make(C.KEY_SPLIT), FREE) is None
    assert ruled(make(C.POSITION_DRIFT), FREE) == make(C.POSITION_DRIFT)
    both = make(C.ORDER_INVERSION, detail={"behind": "b", "outbox_batch": "3.1.0"})
    assert ruled(both, FREE) == make(C.POSITION_DRIFT, detail={"outbox_batch": "3.1.0"})


@pytest.mark.parametrize("finding_class", [C.LOST, C.SKIPPED, C.CORRUPT_VALUE])
def test_what_could_be_published_again_says_where_order_does_not_stand_against_it(
    finding_class: FindingClass,
) -> None:
    finding = make(finding_class, detail={"copies": 0})
    free = ruled(finding, FREE)
    assert free is not None
    assert free.detail == {"copies": 0, "ordered": False}
    assert ruled(finding, FREE, {"points"}) == finding
    assert ruled(finding, ANYWHERE) == finding


def test_a_key_says_nothing_of_the_partition_where_any_partitioner_writes() -> None:
    by_key = {"expected": 1, "actual": 2, "requested": False}
    noted = {"recorded": {"partition": 1, "offset": 2}}
    assert ruled(make(C.WRONG_PARTITION, detail=by_key), ANYWHERE) is None
    assert ruled(make(C.WRONG_PARTITION, detail=by_key | noted), ANYWHERE) == make(
        C.WRONG_OFFSET, detail=noted
    )
    asked = make(C.WRONG_PARTITION, detail=by_key | {"requested": True})
    assert ruled(asked, ANYWHERE) == asked
    assert ruled(make(C.KEY_SPLIT), ANYWHERE) == make(C.KEY_SPLIT)


def test_records_of_other_writers_are_as_bad_as_the_topic_says() -> None:
    foreign = make(C.FOREIGN)
    assert ruled(foreign, {}) is None
    assert ruled(foreign, topic_rules({"points": {"foreign": "off"}})) is None
    for level, severity in (("low", Severity.LOW), ("high", Severity.HIGH)):
        found = ruled(foreign, topic_rules({"points": {"foreign": level}}))
        assert found is not None
        assert found.severity is severity


def test_a_class_is_as_bad_as_the_topic_says_and_the_next_rules_may_say_otherwise() -> None:
    mild = ruled(make(C.LOST), topic_rules({"points": {"severity": {"LOST": "low"}}}))
    assert mild is not None
    assert (mild.severity, mild.graded.severity) == (Severity.LOW, Severity.LOW)
    again = ruled(mild, {})
    assert again is not None
    assert again.severity is Severity.CRITICAL
