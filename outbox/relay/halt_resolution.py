"""Which ways lead on from a HALT: what an operator may order for which reason."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from outbox.relay.protocol.state import HaltReason


class Way(StrEnum):
    """What an operator may order for a halted shard."""

    ACCEPT = "accept"
    """The stores are rightly other ones: go on with them."""
    SCAN = "scan"
    """Learn from the topics themselves what Kafka has."""
    ACCEPT_DUPLICATES = "accept-duplicates"
    """Go on at the log's end; what PostgreSQL does not know as published goes out again."""


WAYS: Final[Mapping[HaltReason, tuple[Way, ...]]] = {
    HaltReason.CLUSTER_CHANGED: (Way.ACCEPT,),
    HaltReason.TOPIC_CHANGED: (Way.ACCEPT,),
    HaltReason.DATABASE_CHANGED: (Way.ACCEPT,),
    HaltReason.CURSOR_MISSING: (Way.SCAN,),
    HaltReason.PROGRESS_LOST: (Way.SCAN, Way.ACCEPT_DUPLICATES),
    HaltReason.CHAIN_BROKEN: (Way.SCAN,),
    HaltReason.FOREIGN_MANIFEST: (Way.SCAN,),
    HaltReason.REPLAY_STUCK: (Way.SCAN,),
}

ADVICE: Final[Mapping[HaltReason, str]] = {
    HaltReason.CLUSTER_CHANGED: "another Kafka cluster: if that is intended, --accept",
    HaltReason.TOPIC_CHANGED: "outbox.progress is another topic or has not 16 partitions: --accept",
    HaltReason.DATABASE_CHANGED: "another PostgreSQL: --accept after a restore, never for a copy",
    HaltReason.CURSOR_MISSING: "manifests exist but no progress row: --scan",
    HaltReason.PROGRESS_LOST: "the manifests it would read next are gone: --scan, or "
    "--accept-duplicates",
    HaltReason.CHAIN_BROKEN: "a manifest does not follow the one before: find the cause, --scan",
    HaltReason.FOREIGN_MANIFEST: "somebody else writes to outbox.progress: stop it, then --scan",
    HaltReason.REPLAY_STUCK: "a transaction is open on the partition; a stranger's ends by itself. "
    "For one that Kafka lost, see the runbook: stop the checkers, abort it, --scan",
}
