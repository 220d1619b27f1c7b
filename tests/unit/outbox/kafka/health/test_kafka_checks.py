"""The doctor's failures and warnings about Kafka."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.kafka.health.kafka_checks import (
    election_health,
    progress_topic_health,
    release_health,
    share_group_health,
    transaction_health,
    writable_health,
)
from outbox.kafka.health.open_transactions import RELAY_SECONDS, OpenTransaction
from outbox.kafka.health.topic_durability import TopicDurability
from outbox.kafka.progress_topic import ProgressTopicFacts, topic_settings
from outbox.operators.health_check import HealthStatus
from outbox.reconciliation.log import Partition


def topic_verdicts(
    verification: str = "true",
    older_than_4: bool = False,
    partitions: int = 16,
    **changed: str,
) -> dict[str, HealthStatus]:
    settings = {**topic_settings(3), **{k.replace("_", "."): v for k, v in changed.items()}}
    facts = ProgressTopicFacts(
        brokers=3,
        topics=1,
        partitions=partitions,
        settings=settings,
        partition_verification=verification,
        older_than_4=older_than_4,
    )
    return {each.check: each.verdict for each in progress_topic_health(facts)}


def test_the_topic_as_created_passes_every_check() -> None:
    assert set(topic_verdicts().values()) == {HealthStatus.OK}
    assert topic_verdicts(retention_ms="-1")["retention.ms"] is HealthStatus.OK


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cleanup.policy", "compact"),
        ("retention.ms", "604800000"),
        ("retention.bytes", "1073741824"),
        ("unclean.leader.election.enable", "true"),
    ],
)
def test_a_topic_that_may_lose_manifests_fails(setting: str, value: str) -> None:
    assert topic_verdicts("true", False, 16, **{setting: value})[setting] is HealthStatus.FAILED


@pytest.mark.parametrize(
    ("partitions", "verdict"),
    [(0, HealthStatus.FAILED), (15, HealthStatus.FAILED), (17, HealthStatus.WARNING)],
)
def test_a_topic_without_one_partition_for_each_shard_is_named(
    partitions: int, verdict: HealthStatus
) -> None:
    assert topic_verdicts(partitions=partitions)["outbox.progress"] is verdict


def test_a_topic_that_takes_only_small_manifests_is_a_warning() -> None:
    assert topic_verdicts(max_message_bytes="10000")["max.message.bytes"] is HealthStatus.WARNING


def test_a_broker_that_does_not_verify_transactions_fails() -> None:
    found = topic_verdicts(verification="false")
    assert found["transaction.partition.verification.enable"] is HealthStatus.FAILED


def test_a_broker_older_than_4_fails() -> None:
    assert topic_verdicts(older_than_4=True)["kafka version"] is HealthStatus.FAILED


SAFE = TopicDurability(topic="orders", replicas=3, present=3, in_sync=2, unclean=False)


def test_a_release_that_skips_markers_is_a_warning_while_one_broker_may_die() -> None:
    assert release_health([SAFE], True).verdict is HealthStatus.WARNING
    assert release_health([replace(SAFE, replicas=1)], False).verdict is HealthStatus.OK


@pytest.mark.parametrize("weak", [replace(SAFE, replicas=2), replace(SAFE, in_sync=1)])
def test_a_release_that_skips_markers_fails_with_too_few_replicas_of_any_topic(
    weak: TopicDurability,
) -> None:
    named = replace(weak, topic="payments")
    found = release_health([SAFE, named], True)
    assert found.verdict is HealthStatus.FAILED
    assert "payments" in found.detail
    assert "orders" not in found.detail
    allowed = release_health([SAFE, named], True, allowed=True)
    assert allowed.verdict is HealthStatus.WARNING


def test_unclean_leader_election_of_any_topic_fails() -> None:
    assert election_health([SAFE]).verdict is HealthStatus.OK
    risky = replace(SAFE, unclean=True)
    assert election_health([SAFE, risky]).verdict is HealthStatus.FAILED


@pytest.mark.parametrize(
    "waiting",
    [replace(SAFE, present=1), replace(SAFE, present=0), replace(SAFE, present=0, in_sync=None)],
)
def test_a_topic_that_takes_no_records_fails_and_is_named(waiting: TopicDurability) -> None:
    alone = replace(SAFE, replicas=1, present=1)
    unknown = replace(SAFE, in_sync=None)
    assert writable_health([SAFE, alone, unknown]).verdict is HealthStatus.OK
    found = writable_health([SAFE, replace(waiting, topic="payments")])
    assert found.verdict is HealthStatus.FAILED
    assert found.detail.startswith("payments (")


def test_a_setting_that_cannot_be_read_is_a_warning_and_hides_no_failure() -> None:
    hidden = replace(SAFE, topic="payments", in_sync=None, unclean=None)
    assert release_health([hidden], True).verdict is HealthStatus.WARNING
    found = election_health([SAFE, hidden])
    assert (found.verdict, "unknown for payments:" in found.detail) == (HealthStatus.WARNING, True)
    risky = replace(SAFE, unclean=True)
    assert election_health([hidden, risky]).verdict is HealthStatus.FAILED


def opened(seconds_ago: float | None, *, sure: bool = True, ours: bool = True) -> HealthStatus:
    """Return the verdict on one open transaction at second 10 000."""
    began = None if seconds_ago is None else 10_000 - seconds_ago
    found = OpenTransaction(
        partition=Partition("t", 0), offset=7, began=began, sure=sure, ours=ours
    )
    return transaction_health([found], 10_000, 900, "broker:9092").verdict


def test_a_transaction_hangs_when_it_is_older_than_kafka_lets_it_become() -> None:
    assert opened(RELAY_SECONDS - 1) is HealthStatus.OK
    assert opened(RELAY_SECONDS + 1) is HealthStatus.FAILED
    assert opened(None, sure=False) is HealthStatus.WARNING


def test_the_time_of_a_strangers_own_record_proves_no_age() -> None:
    assert opened(900, ours=False) is HealthStatus.OK
    assert opened(1000, sure=False, ours=False) is HealthStatus.WARNING
    assert opened(1000, ours=False) is HealthStatus.FAILED


def test_share_groups_that_read_uncommitted_records_are_named_in_a_warning() -> None:
    assert share_group_health([]).verdict is HealthStatus.OK
    assert share_group_health(None).verdict is HealthStatus.WARNING
    found = share_group_health([f"group-{number}" for number in range(7)])
    assert found.verdict is HealthStatus.WARNING
    assert "group-4 and 2 more" in found.detail
