"""Finds the message of a record by its place in Kafka."""

from __future__ import annotations

from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.record import MESSAGE_ID
from outbox.reconciliation.log import LogEnd, Partition


def message_at(log: KafkaLogReader, partition: Partition, offset: int) -> str | None:
    """Return the message id in the headers of a committed record; None if there is none.

    Offsets outside of the log are not waited for. Raises KafkaForbidden, KafkaUnavailable.
    """
    if partition not in log.partitions([partition.topic]):
        log.require_read([partition.topic])
        return None
    start = log.offsets([partition], LogEnd.START).offsets.get(partition)
    end = log.offsets([partition], LogEnd.LAST_STABLE).offsets.get(partition)
    if start is None or end is None or not start <= offset < end:
        return None
    for record in log.records([(partition, offset)]):
        for name, value in record.headers:
            if name == MESSAGE_ID and value is not None:
                return value.decode(errors="replace")
    return None
