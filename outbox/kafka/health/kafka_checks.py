"""Kafka: the progress topic, the release, durability of topics, open transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from confluent_kafka.admin._acl import AclOperation

from outbox.clock import SystemClock
from outbox.errors import KafkaForbidden, KafkaUnavailable
from outbox.kafka.client_config import admin_client
from outbox.kafka.health.partition_states import partition_states
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import (
    NO_LIMIT,
    PARTITIONS,
    PROGRESS_TOPIC,
    RETENTION_MS,
    ProgressTopicFacts,
    progress_topic_facts,
    safety_of,
)
from outbox.kafka.topics import SAFE_IN_SYNC, TO_READ, Topic, read_topics, weak_topics
from outbox.operators.health_check import HealthCheck, HealthStatus, failed, health_check
from outbox.operators.server_requirements import RELEASE, judge_release
from outbox.operators.store_view import PartitionState
from outbox.settings.catalogue import Settings
from outbox.settings.service_manager import start_command

TRANSACTIONS = "__transaction_state"
TO_JUDGE = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
"""For the replicas and the settings of a topic that only Kafka reads."""
FOR_EVER = -1
UNCLEAN = "unclean.leader.election.enable"
MOST_NAMED = 5


def kafka_checks(settings: Settings, data_topics: Collection[str]) -> Iterator[HealthCheck]:
    """Check the cluster, its progress topic and the topics that had messages."""
    servers, config = settings.required_bootstrap_servers(), settings.kafka_config
    data = {PROGRESS_TOPIC, *data_topics}
    try:
        topics = read_topics(admin_client(servers, config), {*data, TRANSACTIONS})
        yield rights_health(topics.values())
        facts = progress_topic_facts(servers, config)
        yield health_check("kafka", True, f"{facts.brokers} broker(s), {facts.topics} topics")
        yield from progress_topic_health(facts)
        ours = [topics[name] for name in sorted(data & topics.keys())]
        yield release_health(ours, facts.newer_than_4_2, allowed=settings.relay_allow_kafka_release)
        yield writable_health(topics.values())
        yield election_health(topics.values())
        now, log = SystemClock().now().timestamp(), KafkaLogReader(servers, config)
        yield transaction_health(partition_states(log, servers, config, data, now))
    except KafkaForbidden as error:
        yield health_check("kafka", False, f"{servers}: {error}")
    except KafkaUnavailable as error:
        yield unreachable(servers, str(error))


def unreachable(servers: str, error: str) -> HealthCheck:
    """Return the check of a cluster that does not answer."""
    asked = "is it running, and is it what OUTBOX_KAFKA_BOOTSTRAP_SERVERS means?"
    return health_check(
        "kafka", False, f"{servers}: {error}; {asked}", command=start_command("kafka")
    )


def rights_health(topics: Collection[Topic]) -> HealthCheck:
    """Check for rights without which the checks below see less than there is."""
    missing = [each.lacks(*(TO_JUDGE if each.name == TRANSACTIONS else TO_READ)) for each in topics]
    words = sorted(filter(None, missing))
    detail = "; ".join(words) or "none is missing for these checks"
    return health_check("kafka rights", not words, detail, HealthStatus.WARNING)


def progress_topic_health(facts: ProgressTopicFacts) -> Iterator[HealthCheck]:
    """Check the topic `outbox.progress` and the broker settings that its transactions need."""
    detail = f"{facts.partitions} partitions, required: {PARTITIONS}"
    yield health_check("outbox.progress", facts.partitions >= PARTITIONS, detail)
    yield from safety_of(facts)
    kept = int(facts.settings.get("retention.ms", "0"))
    long_enough = kept == FOR_EVER or kept >= RETENTION_MS
    yield health_check("retention.ms", long_enough, f"{kept}, required: {RETENTION_MS} or more")
    size = facts.settings.get("retention.bytes", NO_LIMIT)
    detail = f"{size}, required: {NO_LIMIT}, or manifests are deleted before that time"
    yield health_check("retention.bytes", size == NO_LIMIT, detail)
    in_sync = int(facts.settings.get("min.insync.replicas", "1"))
    detail = f"{in_sync}; 2 with three brokers survives the loss of one"
    yield health_check("min.insync.replicas", in_sync >= SAFE_IN_SYNC, detail, HealthStatus.WARNING)


def writable_health(topics: Collection[Topic]) -> HealthCheck:
    """Check that every topic takes records."""
    waiting = [
        f"{each.name} ({each.present} replicas in sync, min.insync.replicas {each.in_sync})"
        for each in topics
        if not each.takes_records
    ]
    detail = "every topic takes records"
    if waiting:
        detail = f"{_named(waiting)}: its messages wait; bring its brokers back"
    return health_check("topics in sync", not waiting, detail)


def election_health(topics: Collection[Topic]) -> HealthCheck:
    """Check that no replica may lead that lacks acknowledged records."""
    values = {each.name: each.settings.get(UNCLEAN) for each in topics}
    if unclean := [name for name, value in values.items() if value == "true"]:
        detail = f"on for {_named(unclean)}: acknowledged records may be lost"
        return health_check("unclean leader election", False, detail)
    if hidden := [name for name, value in values.items() if value is None]:
        detail = f"unknown for {_named(hidden)}: their settings cannot be read"
        return health_check("unclean leader election", False, detail, HealthStatus.WARNING)
    return health_check("unclean leader election", True, "off for every topic")


def release_health(
    topics: Collection[Topic], newer_than_4_2: bool, *, allowed: bool = False
) -> HealthCheck:
    """Check for releases on which the relay does not start, or is exposed (ADR 0017)."""
    if not newer_than_4_2:
        return health_check(RELEASE, True, "not one to avoid")
    judged = judge_release(weak_topics(topics), allowed=allowed)
    if failed([judged]):
        return judged
    exposed = f"{judged.detail}; exposed while all in-sync replicas of a partition are away"
    return health_check(RELEASE, False, exposed, HealthStatus.WARNING)


def transaction_health(states: Sequence[PartitionState]) -> HealthCheck:
    """Check for transactions that never end."""
    found = [each for each in states if each.hangs] or [each for each in states if each.suspected]
    if not found:
        count = sum(each.last_stable_offset < each.end_offset for each in states)
        return health_check("hanging transactions", True, f"none; {count} open")
    places = _named([_place(each) for each in found])
    detail, status = f"age unknown: {places}", HealthStatus.WARNING
    if found[0].hangs:
        detail = f"{places}: read_committed consumers stop there; see docs/runbooks.md"
        status = HealthStatus.FAILED
    return health_check("hanging transactions", False, detail, status, found[0].command)


def _place(each: PartitionState) -> str:
    began = "-" if each.open_since is None else each.open_since.isoformat()
    whose = "a relay's" if each.ours else "a stranger's"
    where = f"{each.topic}/{each.partition} from offset {each.last_stable_offset}"
    return f"{where} since {began} ({whose})"


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
