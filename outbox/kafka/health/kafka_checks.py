"""Kafka: the progress topic, the release, durability of topics, open transactions, share groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from threading import Event

from outbox.clock import SystemClock
from outbox.errors import KafkaForbidden, KafkaUnavailable
from outbox.kafka.client_config import PRODUCER_DEFAULTS
from outbox.kafka.health.open_transactions import OpenTransaction, open_transactions
from outbox.kafka.health.partition_states import find_producer
from outbox.kafka.health.rights import TRANSACTIONS, missing_rights_to_judge
from outbox.kafka.health.share_groups import dirty_share_groups
from outbox.kafka.health.topic_durability import (
    SAFE_IN_SYNC,
    TopicDurability,
    topic_durability,
    weak_topics,
)
from outbox.kafka.progress_topic import (
    NO_LIMIT,
    PARTITIONS,
    PROGRESS_TOPIC,
    RETENTION_MS,
    ProgressTopicFacts,
    progress_topic_facts,
    safety_of,
)
from outbox.operators.health_check import HealthCheck, HealthStatus, health_check, judged
from outbox.relay.server_requirements import RELEASE, judge_release
from outbox.settings.catalogue import Settings
from outbox.settings.service_manager import start_command

FOR_EVER = -1
LARGEST_BYTES = int(PRODUCER_DEFAULTS["message.max.bytes"])
SECOND_LOOK_SECONDS = 5.0
"""A stranger may copy records of another day in short transactions: does the same one go on?"""
MOST_NAMED = 5


def kafka_checks(settings: Settings, data_topics: Collection[str]) -> Iterator[HealthCheck]:
    """Check the cluster, its progress topic and the topics that had messages."""
    servers, config = settings.required_bootstrap_servers(), settings.kafka_config
    topics = {PROGRESS_TOPIC, *data_topics}
    try:
        yield rights_health(missing_rights_to_judge(servers, config, topics))
        facts = progress_topic_facts(servers, config)
        yield health_check("kafka", True, f"{facts.brokers} broker(s), {facts.topics} topics")
        yield from progress_topic_health(facts)
        durability = topic_durability(servers, config, {*topics, TRANSACTIONS})
        data = [each for each in durability if each.topic != TRANSACTIONS]
        yield release_health(data, facts.newer_than_4_2, allowed=settings.relay_allow_kafka_release)
        yield writable_health(durability)
        yield election_health(durability)
        now = SystemClock().now().timestamp()
        longest = facts.longest_transaction_seconds
        found = open_transactions(servers, config, topics)
        if any(each.may_hang(now, longest) for each in found):
            Event().wait(SECOND_LOOK_SECONDS)
            before = {(each.partition, each.offset) for each in found}
            again = open_transactions(servers, config, topics)
            found = [each for each in again if (each.partition, each.offset) in before]
        yield transaction_health(found, now, longest, servers)
        yield share_group_health(dirty_share_groups(servers, config))
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


def rights_health(missing: Sequence[str]) -> HealthCheck:
    """Check for rights without which the checks below see less than there is."""
    detail = "; ".join(missing) or "none is missing for these checks"
    return health_check("kafka rights", not missing, detail, HealthStatus.WARNING)


def progress_topic_health(facts: ProgressTopicFacts) -> Iterator[HealthCheck]:
    """Check the topic `outbox.progress` and the broker settings that its transactions need."""
    yield partition_health(facts.partitions)
    yield from judged(safety_of(facts))
    kept = int(facts.settings.get("retention.ms", "0"))
    long_enough = kept == FOR_EVER or kept >= RETENTION_MS
    yield health_check("retention.ms", long_enough, f"{kept}, required: {RETENTION_MS} or more")
    size = facts.settings.get("retention.bytes", NO_LIMIT)
    detail = f"{size}, required: {NO_LIMIT}, or manifests are deleted before that time"
    yield health_check("retention.bytes", size == NO_LIMIT, detail)
    largest = int(facts.settings.get("max.message.bytes", LARGEST_BYTES))
    detail = f"{largest}; below {LARGEST_BYTES} the relay publishes in small batches, or stops"
    enough = largest >= LARGEST_BYTES
    yield health_check("max.message.bytes", enough, detail, HealthStatus.WARNING)
    unclean = facts.settings.get("unclean.leader.election.enable", "-")
    yield health_check("unclean.leader.election.enable", unclean == "false", unclean)
    in_sync = int(facts.settings.get("min.insync.replicas", "1"))
    detail = f"{in_sync}; 2 with three brokers survives the loss of one"
    yield health_check("min.insync.replicas", in_sync >= SAFE_IN_SYNC, detail, HealthStatus.WARNING)


def partition_health(partitions: int) -> HealthCheck:
    """Check that each shard has its partition; more are a mistake that cannot be undone."""
    detail = f"{partitions} partitions, required: {PARTITIONS}"
    if partitions > PARTITIONS:
        detail += ": nothing uses the others"
        return health_check("outbox.progress", False, detail, HealthStatus.WARNING)
    return health_check("outbox.progress", partitions == PARTITIONS, detail)


def writable_health(topics: Sequence[TopicDurability]) -> HealthCheck:
    """Check that every topic takes records: a shard waits for the next one, whatever its topic."""
    waiting = [
        f"{each.topic} ({each.present} replicas in sync, min.insync.replicas {each.in_sync})"
        for each in topics
        if not each.takes_records
    ]
    detail = "every topic takes records"
    if waiting:
        detail = f"{_named(waiting)}: shards wait, with all their topics; bring its brokers back"
    return health_check("topics in sync", not waiting, detail)


def election_health(topics: Sequence[TopicDurability]) -> HealthCheck:
    """Check that no replica may lead that lacks acknowledged records."""
    unclean = [each.topic for each in topics if each.unclean]
    hidden = [each.topic for each in topics if each.unclean is None]
    if unclean:
        detail = f"on for {_named(unclean)}: acknowledged records may be lost"
        return health_check("unclean leader election", False, detail)
    if hidden:
        detail = f"unknown for {_named(hidden)}: their settings cannot be read"
        return health_check("unclean leader election", False, detail, HealthStatus.WARNING)
    return health_check("unclean leader election", True, "off for every topic")


def release_health(
    topics: Sequence[TopicDurability], newer_than_4_2: bool, *, allowed: bool = False
) -> HealthCheck:
    """Check for releases on which the relay does not start, or is exposed (ADR 0017)."""
    if not newer_than_4_2:
        return health_check(RELEASE, True, "not one to avoid")
    judged = judge_release(weak_topics(topics), allowed=allowed)
    if not judged.safe:
        return health_check(RELEASE, False, judged.detail)
    exposed = f"{judged.detail}; exposed while all in-sync replicas of a partition are away"
    return health_check(RELEASE, False, exposed, HealthStatus.WARNING)


def transaction_health(
    found: Sequence[OpenTransaction], now: float, longest_seconds: float, servers: str
) -> HealthCheck:
    """Check for transactions that never end; `now` is local epoch seconds."""
    hanging = [each for each in found if each.hangs(now, longest_seconds)]
    if hanging:
        places = _named([_place(each) for each in hanging])
        detail = f"{places}: read_committed consumers stop there; see docs/runbooks.md"
        command = find_producer(servers, hanging[0].partition)
        return health_check("hanging transactions", False, detail, command=command)
    unknown = [each for each in found if each.may_hang(now, longest_seconds)]
    if unknown:
        places = _named([_place(each) for each in unknown])
        detail = f"age unknown: {places}"
        command = find_producer(servers, unknown[0].partition)
        return health_check("hanging transactions", False, detail, HealthStatus.WARNING, command)
    return health_check("hanging transactions", True, f"none; {len(found)} open")


def share_group_health(groups: Sequence[str] | None) -> HealthCheck:
    """Check for share groups that read what was never committed; None: not allowed to look."""
    if groups is None:
        detail = "unknown: this principal may not see all groups or their settings"
        return health_check("share groups", False, detail, HealthStatus.WARNING)
    if groups:
        detail = (
            f"{_named(groups)} read uncommitted records, which is the default:"
            " set share.isolation.level=read_committed"
        )
        return health_check("share groups", False, detail, HealthStatus.WARNING)
    return health_check("share groups", True, "none reads uncommitted records")


def _place(each: OpenTransaction) -> str:
    began = "-" if each.began is None else datetime.fromtimestamp(each.began, UTC).isoformat()
    whose = "a relay's" if each.ours else "a stranger's"
    topic, number = each.partition
    return f"{topic}/{number} from offset {each.offset} since {began} ({whose})"


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
