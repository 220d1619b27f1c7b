"""The invariants of every run, one line each; docs/chaos.md explains them."""

from __future__ import annotations

from typing import Final

INVARIANTS: Final = {
    "I1": "at most one record of a message is visible",
    "I2": "Kafka has nothing that was not committed",
    "I3": "every committed message has its record",
    "I4": "a message has one decision, which never changes",
    "I5": "what was acknowledged is stored",
    "I6": "records of a key are in commit order",
    "I7": "records have the prepared content",
    "I8": "records and manifests name each other",
    "I9": "the manifests of a shard are one chain",
    "I10": "the cursor skipped no commit",
    "I11": "a commit is listed once, in its own transaction",
    "I12": "checks are not early, not late and not too many",
    "I13": "only a verdict of a check decides",
    "I14": "a verdict counts only for the message of its check",
    "I15": "no half message was retired before its time",
    "I16": "no transaction is left open in Kafka",
    "I17": "the backlog drained",
    "I18": "a refused call left no trace",
    "G7": "no check decided against the local transaction",
    "poll": "live readers received each record once, in order",
}

KILLING: Final = frozenset({"kill", "kill_young", "failpoint"})
"""Faults that are counted by the processes that they kill."""
