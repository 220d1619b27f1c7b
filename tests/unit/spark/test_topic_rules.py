from __future__ import annotations

from typing import Any

import pytest

from outbox.errors import ConfigurationError
from spark.topic_rules import LatencyTarget, targets_of, topic_rules


def test_the_longest_name_that_fits_a_topic_counts() -> None:
    given = {"a.": {"latency_p99_seconds": 1}, "a.b": {"latency_p99_seconds": 2.5}}
    rules = topic_rules({**given, "z": {"latency_p99_seconds": 3, "latency_minutes": 9}})
    assert targets_of(["a.a", "a.b.c", "b", "z"], rules) == {
        "a.a": LatencyTarget(p99_seconds=1.0, minutes=5),
        "a.b.c": LatencyTarget(p99_seconds=2.5, minutes=5),
        "z": LatencyTarget(p99_seconds=3.0, minutes=9),
    }


@pytest.mark.parametrize(
    "rule",
    [
        2,
        {},
        {"latency_minutes": 5},
        {"latency_p99_seconds": 0},
        {"latency_p99_seconds": "2"},
        {"latency_p99_seconds": True},
        {"latency_p99_seconds": 2, "latency_minutes": 0},
        {"latency_p99_seconds": 2, "latency_minutes": 1.5},
        {"latency_p99_seconds": 2, "latency": 1},
    ],
)
def test_a_rule_that_is_not_understood_is_refused_by_name(rule: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"TOPIC_RULES: 'a\.'"):
        topic_rules({"a.": rule})
