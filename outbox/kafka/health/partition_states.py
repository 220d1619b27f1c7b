"""The partitions of topics, and their transactions that are open or never ended.

Kafka ends a transaction that is open for too long. One that is older than its time limit hangs: its
marker was skipped, and no `read_committed` consumer gets past it.

The time of a record is its producer's, and Kafka Streams and mirrors copy it. So the age of a
stranger's transaction is known only by the brokers' time (`LogAppendTime`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Message, TopicPartition

from outbox.errors import KafkaForbidden
from outbox.kafka.client_config import TRANSACTION_SECONDS, consumer_config
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.permission import next_event
from outbox.kafka.progress_topic import PROGRESS_TOPIC, progress_topic_facts
from outbox.messages.record import MESSAGE_ID
from outbox.operators.store_view import PartitionState
from outbox.reconciliation.log import LogEnd
from outbox.settings.service_manager import kafka_command

READ_SECONDS: Final = 10.0
UNCOMMITTED: Final = {"isolation.level": "read_uncommitted"}
SWEEP_SECONDS: Final = 50.0
"""Kafka looks for transactions that are too old every ten seconds, and ends them with a marker."""


def partition_states(
    log: KafkaLogReader,
    bootstrap_servers: str,
    kafka_config: Mapping[str, Any],
    topics: Collection[str],
    now: float,
) -> Sequence[PartitionState]:
    """Return every partition that answers, in order; ``now`` is epoch seconds.

    Raises KafkaUnavailable.
    """
    partitions = log.partitions(topics)
    # The stable offsets are read last: a transaction that has ended meanwhile is not behind.
    ends = log.offsets(partitions, LogEnd.HIGH_WATERMARK).offsets
    stable = log.offsets(partitions, LogEnd.LAST_STABLE).offsets
    states = [
        PartitionState(
            topic=each.topic,
            partition=each.number,
            end_offset=max(at, ends.get(each, at)),
            last_stable_offset=at,
            open_since=None,
            ours=False,
            hangs=False,
            suspected=False,
            command=None,
        )
        for each, at in sorted(stable.items())
    ]
    if all(each.last_stable_offset == each.end_offset for each in states):
        return states
    longest = max(progress_topic_facts(bootstrap_servers, kafka_config).transaction_limits)
    config = consumer_config(bootstrap_servers, kafka_config)
    with closing(Consumer({**config, **UNCOMMITTED}, logger=None)) as consumer:
        return [
            _open(each, _first_record(consumer, each), now, longest, bootstrap_servers)
            if each.last_stable_offset < each.end_offset
            else each
            for each in states
        ]


def _first_record(consumer: Consumer, at: PartitionState) -> Message | None:
    """Return the first record of the open transaction; None: it may not, or cannot, be read."""
    consumer.assign([TopicPartition(at.topic, at.partition, at.last_stable_offset)])
    message = None
    with suppress(KafkaForbidden):  # The doctor names rights that are missing.
        message = next_event(consumer, READ_SECONDS)
    return None if message is None or message.error() is not None else message


def _open(
    state: PartitionState, first: Message | None, now: float, longest: float, servers: str
) -> PartitionState:
    """Return the state with its open transaction; ``longest`` is the limit of strangers (s)."""
    where = f"--topic {state.topic} --partition {state.partition}"
    command = f"{kafka_command('kafka-transactions.sh', servers)} describe-producers {where}"
    state = replace(state, suspected=True, command=command)
    if first is None:
        return state
    headers: Any = first.headers() or ()
    ours = state.topic == PROGRESS_TOPIC or any(name == MESSAGE_ID for name, _ in headers)
    stamped_by, began_ms = first.timestamp()
    is_old = now - began_ms / 1000 > (TRANSACTION_SECONDS if ours else longest) + SWEEP_SECONDS
    return replace(
        state,
        open_since=datetime.fromtimestamp(began_ms / 1000, UTC),
        ours=ours,
        suspected=is_old,
        hangs=is_old and (ours or stamped_by == TIMESTAMP_LOG_APPEND_TIME),
    )
