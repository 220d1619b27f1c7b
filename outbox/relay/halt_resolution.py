"""The orders that an operator may give for each reason of a HALT."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from outbox.relay.protocol.state import HaltReason


class HaltResolution(StrEnum):
    """An operator's order for a halted shard."""

    ACCEPT = "accept"
    """The other stores are intended, or the missing row is back: continue with them."""
    SCAN = "scan"
    """Read from the topics themselves which messages Kafka has."""
    ACCEPT_DUPLICATES = "accept-duplicates"
    """Continue at the log's end; messages not stored as published are published again."""


RESOLUTIONS: Final[Mapping[HaltReason, tuple[HaltResolution, ...]]] = {
    HaltReason.CLUSTER_CHANGED: (HaltResolution.ACCEPT,),
    HaltReason.TOPIC_CHANGED: (HaltResolution.ACCEPT,),
    HaltReason.DATABASE_CHANGED: (HaltResolution.ACCEPT,),
    HaltReason.CURSOR_MISSING: (HaltResolution.SCAN,),
    HaltReason.PROGRESS_LOST: (HaltResolution.SCAN, HaltResolution.ACCEPT_DUPLICATES),
    HaltReason.CHAIN_BROKEN: (HaltResolution.SCAN,),
    HaltReason.FOREIGN_MANIFEST: (HaltResolution.SCAN,),
    HaltReason.REPLAY_STUCK: (HaltResolution.SCAN,),
    HaltReason.ROW_MISSING: (HaltResolution.ACCEPT,),
}

ADVICE: Final[Mapping[HaltReason, str]] = {
    HaltReason.CLUSTER_CHANGED: "another Kafka cluster: if that is intended, --accept",
    HaltReason.TOPIC_CHANGED: "outbox.progress is another topic or has fewer than 16 "
    "partitions: --accept",
    HaltReason.DATABASE_CHANGED: "another PostgreSQL: after a restore, `outbox installation "
    "rebase`, then --accept; never for a copy",
    HaltReason.CURSOR_MISSING: "manifests exist but no progress row: --scan",
    HaltReason.PROGRESS_LOST: "the next manifests to read are gone: --scan, or --accept-duplicates",
    HaltReason.CHAIN_BROKEN: "a manifest does not continue the previous one: find the cause, "
    "then --scan",
    HaltReason.FOREIGN_MANIFEST: "another program writes to outbox.progress: stop it, then --scan",
    HaltReason.REPLAY_STUCK: "another program has a transaction open on the partition: once its "
    "owner ends it, the shard continues. If the owner is gone: see the runbook, --scan",
    HaltReason.ROW_MISSING: "the row of a committed message is gone; the checker's log names it. "
    "Put one back (docs/runbooks.md, A message whose row is damaged), then --accept",
}
