"""An installation with four planted faults, for audits on Spark elsewhere than in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.message import Resolution
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import cause_in

PROGRESS_PREFIX: Final = PROGRESS_TOPIC.split(".")[0]
"""A separate program reads the default topic of manifests."""


def plant_faults(database_url: str, bootstrap_servers: str) -> Mapping[str, str]:
    """Publish forty messages, four of them wrongly; return the cause of each fault by message."""
    writer = OutboxWriter(database_url, bootstrap_servers, PROGRESS_PREFIX)
    writer.create_topics("points")
    halves = writer.prepare("points", 40)
    writer.end(halves[:39], Resolution.COMMIT)
    lost, skipped, doubled, undecided = halves[3], halves[5], halves[7], halves[39]
    writer.publish(
        lambda record: () if record.key == b"member-3" else (record,), held=[skipped.half_id]
    )
    writer.produce(writer.record(doubled), writer.record(undecided))
    named = {
        lost: "LOST/published",
        skipped: "LOST/skipped",
        doubled: "DUPLICATE/repeated",
        undecided: "ORPHAN/undecided",
    }
    return {str(half.message_id): fault for half, fault in named.items()}


def causes_found(report: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the cause of each finding of a report by the message it names."""
    return {each["message_id"]: cause_in(each) for each in report["findings"]}
