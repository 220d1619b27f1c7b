"""An unsafe server is refused with the name of the unsafe setting."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.kafka.progress_topic import ProgressTopicFacts, safety_of
from outbox.operators.health_check import failed

SAFE: dict[str, Any] = {
    "brokers": 3,
    "topics": 1,
    "partitions": 16,
    "settings": {"cleanup.policy": "delete"},
    "partition_verification": "true",
    "older_than_4": False,
}
VERIFICATION = "transaction.partition.verification.enable"


def refused(**found: Any) -> set[str]:
    """Return what is refused of a cluster with these facts."""
    judged = safety_of(ProgressTopicFacts(**{**SAFE, **found}))
    return {each.check for each in failed(judged)}


@pytest.mark.parametrize(
    ("found", "setting"),
    [
        ({"older_than_4": True}, "kafka version"),
        ({"partition_verification": "false"}, VERIFICATION),
        ({"settings": {"cleanup.policy": "compact"}}, "cleanup.policy"),
        ({"settings": {"cleanup.policy": "compact,delete"}}, "cleanup.policy"),
        ({"transaction_limits": (900.0, 9.999)}, "transaction.max.timeout.ms"),
    ],
)
def test_each_unsafe_fact_of_a_cluster_is_refused_by_name(
    found: dict[str, Any], setting: str
) -> None:
    assert refused(**found) == {setting}


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"settings": {}, "partition_verification": "-"},
        {"transaction_limits": (10.0,)},
    ],
)
def test_safe_and_hidden_settings_are_not_refused(
    found: dict[str, Any],
) -> None:
    assert refused(**found) == set()
