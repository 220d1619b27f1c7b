"""Unsafe server settings: with one of them the relay does not start, and the doctor fails.

With such a setting a crash may lose acknowledged writes, Kafka may let a late frame into the next
transaction, or the manifests may be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

RELEASE: Final = "kafka release"
TRANSACTION_SECONDS: Final = 10.0
"""The time limit that the relay asks Kafka for; a broker that allows less gives it no producer."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One setting, whether it is safe, and its value."""

    setting: str
    safe: bool
    detail: str


def judge_postgres(server: Mapping[str, Any]) -> tuple[Judgement, ...]:
    """Judge a server by the settings of one of our sessions (statement `server`)."""
    commit = str(server["synchronous_commit"])
    prepared = int(server["prepared_transactions"])
    ours = server["backend_pid"] == server["announced_pid"]
    pooled = "our own session" if ours else "a pooler: name PostgreSQL itself in the URL"
    return (
        *(Judgement(name, server[name] == "on", str(server[name])) for name in _DURABLE),
        Judgement("synchronous_commit", commit in ("on", "remote_apply"), commit),
        Judgement("max_prepared_transactions", prepared == 0, f"{prepared}, 0 wanted"),
        Judgement("connection", ours, pooled),
    )


_DURABLE: Final = ("fsync", "full_page_writes")


def judge_release(weak_topics: Sequence[str], *, allowed: bool) -> Judgement:
    """Judge Kafka 4.3 or newer by the topics that lose all in-sync replicas with one broker.

    4.3.0, 4.3.1 and 4.4.0 end a transaction without the marker of a partition that has no leader
    just then (KAFKA-20734): its records hang, and the next transaction decides about them. Kafka
    shows its exact version to no client, so an operator allows a release that is fixed.
    """
    wanted = "use 4.2, or replication factor 3 with min.insync.replicas=2"
    detail = f"4.3 or newer loses records (KAFKA-20734) of {', '.join(weak_topics)}: {wanted}"
    return Judgement(RELEASE, allowed or not weak_topics, detail if weak_topics else "4.3 or newer")
