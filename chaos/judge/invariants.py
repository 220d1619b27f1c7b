"""What must hold after every run, in a line each; docs/chaos.md tells more."""

from __future__ import annotations

from typing import Final

INVARIANTS: Final = {
    "I1": "at most one record of a message is visible",
    "I2": "nothing is in Kafka that was not committed",
    "I3": "every committed message has its record",
    "I4": "a message has one decision, for ever",
    "I5": "what was acknowledged is there",
    "I6": "records of a key are in the order of their commits",
    "I7": "records have the content that was prepared",
    "I8": "records and manifests name each other",
    "I9": "the manifests of a shard are one chain",
    "I10": "the cursor passed nothing that no manifest lists",
    "I11": "a commit is listed once, in its own transaction",
    "I12": "checks are neither early nor late nor too many",
    "I13": "only a verdict decides",
    "I14": "a verdict counts only for the message that was asked about",
    "I15": "no half was retired before its time",
    "I16": "no transaction is left open in Kafka",
    "I17": "the backlog drained",
    "I18": "what was refused left no trace",
    "G7": "no check decided against the local transaction",
    "poll": "live readers were given each record once, in order",
}

KILLING: Final = frozenset({"kill", "kill_young", "failpoint"})
"""Faults that are counted by the deaths they cause."""
