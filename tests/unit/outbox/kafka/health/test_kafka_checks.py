"""The doctor's failures and warnings about Kafka."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from outbox.kafka.health.kafka_checks import (
    election_health,
    progress_topic_health,
    release_health,
    writable_health,
)
from outbox.kafka.progress_topic import ProgressTopicFacts, topic_settings
from outbox.kafka.topics import Topic
from outbox.operators.health_check import HealthStatus

GOOD = ProgressTopicFacts(
    brokers=3,
    topics=1,
    partitions=16,
    settings=topic_settings(3),
    partition_verification="true",
    older_than_4=False,
    transaction_limits=(900.0, 10.0),
)


def verdicts(**changed: Any) -> dict[str, HealthStatus]:
    """Judge the progress topic of a cluster in which only this is not as it should be."""
    return {each.check: each.verdict for each in progress_topic_health(replace(GOOD, **changed))}


def test_the_topic_as_created_passes_every_check() -> None:
    assert set(verdicts().values()) == {HealthStatus.OK}
    assert set(verdicts(partitions=17).values()) == {HealthStatus.OK}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "604800000"),
        ("retention.bytes", "1073741824"),
    ],
)
def test_a_topic_that_may_lose_manifests_fails(setting: str, value: str) -> None:
    found = verdicts(settings={**GOOD.settings, setting: value})
    assert found[setting] is HealthStatus.FAILED


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"partitions": 15}, "outbox.progress"),
        ({"partition_verification": "false"}, "transaction.partition.verification.enable"),
        ({"older_than_4": True}, "kafka version"),
        ({"transaction_limits": (900.0, 9.999)}, "transaction.max.timeout.ms"),
    ],
)
def test_a_cluster_that_breaks_a_guarantee_fails(changed: dict[str, Any], check: str) -> None:
    assert verdicts(**changed)[check] is HealthStatus.FAILED


SETTINGS = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
SAFE = Topic(name="orders", partitions=1, replicas=3, present=3, settings=SETTINGS)
ONE_IN_SYNC = replace(SAFE, settings={**SETTINGS, "min.insync.replicas": "1"})
UNCLEAN = replace(SAFE, settings={**SETTINGS, "unclean.leader.election.enable": "true"})


def test_a_release_that_skips_markers_is_a_warning_while_one_broker_may_die() -> None:
    assert release_health([SAFE], True).verdict is HealthStatus.WARNING
    assert release_health([replace(SAFE, replicas=1)], False).verdict is HealthStatus.OK


@pytest.mark.parametrize("weak", [replace(SAFE, replicas=2), ONE_IN_SYNC])
def test_a_release_that_skips_markers_fails_with_too_few_replicas_of_any_topic(
    weak: Topic,
) -> None:
    named = replace(weak, name="payments")
    found = release_health([SAFE, named], True)
    assert found.verdict is HealthStatus.FAILED
    assert "payments" in found.detail
    assert "orders" not in found.detail
    allowed = release_health([SAFE, named], True, allowed=True)
    assert allowed.verdict is HealthStatus.WARNING


@pytest.mark.parametrize("present", [0, 1])
def test_a_topic_that_takes_no_records_fails_and_is_named(present: int) -> None:
    alone = replace(SAFE, replicas=1, present=1)
    assert writable_health([SAFE, alone, replace(SAFE, settings={})]).verdict is HealthStatus.OK
    found = writable_health([SAFE, replace(SAFE, name="payments", present=present)])
    assert found.verdict is HealthStatus.FAILED
    assert found.detail.startswith("payments (")


def test_a_setting_that_cannot_be_read_is_a_warning_and_hides_no_failure() -> None:
    hidden = replace(SAFE, name="payments", settings={})
    assert release_health([hidden], True).verdict is HealthStatus.WARNING
    found = election_health([SAFE, hidden])
    assert (found.verdict, "unknown for payments:" in found.detail) == (HealthStatus.WARNING, True)
    assert election_health([hidden, UNCLEAN]).verdict is HealthStatus.FAILED
    assert election_health([SAFE]).verdict is HealthStatus.OK
