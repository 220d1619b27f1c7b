"""The partitions of the topics that had messages, as the console shows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from outbox.kafka.health.open_transactions import (
    OpenTransaction,
    PartitionEnds,
    partition_ends,
    transactions_behind,
)
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import progress_topic_facts
from outbox.operators.store_view import PartitionState
from outbox.reconciliation.log import Partition


def partition_states(
    log: KafkaLogReader,
    bootstrap_servers: str,
    kafka_config: Mapping[str, Any],
    topics: Collection[str],
    now: float,
) -> Sequence[PartitionState]:
    """Return every partition, in order; ``now`` is epoch seconds. Raises KafkaUnavailable."""
    ends = partition_ends(log, topics)
    found = transactions_behind(bootstrap_servers, kafka_config, ends)
    if not found:
        return [_state(each, at) for each, at in ends.items()]
    longest = progress_topic_facts(bootstrap_servers, kafka_config).longest_transaction_seconds
    first_open = {each.partition: each for each in found}
    hanging = {each.partition for each in found if each.hangs(now, longest)}
    suspects = {each.partition for each in found if each.may_hang(now, longest)}
    return [
        replace(
            _state(each, at, first_open.get(each), find_producer(bootstrap_servers, each)),
            hangs=each in hanging,
            suspected=each in suspects,
        )
        for each, at in ends.items()
    ]


def _state(
    place: Partition,
    ends: PartitionEnds,
    first_open: OpenTransaction | None = None,
    command: str | None = None,
) -> PartitionState:
    began = None if first_open is None else first_open.began
    return PartitionState(
        topic=place.topic,
        partition=place.number,
        end_offset=ends.end,
        last_stable_offset=ends.stable,
        open_since=datetime.fromtimestamp(began, UTC) if began is not None else None,
        ours=first_open is not None and first_open.ours,
        command=command if first_open is not None else None,
    )


def find_producer(bootstrap_servers: str, place: Partition) -> str:
    """Return the command that names the producer of an open transaction."""
    where = f"--topic {place.topic} --partition {place.number}"
    return (
        f"kafka-transactions.sh --bootstrap-server {bootstrap_servers} describe-producers {where}"
    )
