"""Unsafe server settings: with one of them the relay does not start, and the doctor fails.

With such a setting a crash may lose acknowledged writes, Kafka may let a late frame into the next
transaction, or the manifests may be deleted. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from outbox.operators.health_check import HealthCheck, health_check

RELEASE: Final = "kafka release"
_DURABLE: Final = ("fsync", "full_page_writes")


def judge_postgres(server: Mapping[str, Any]) -> tuple[HealthCheck, ...]:
    """Judge a server by the settings of one of our sessions (statement `server`)."""
    commit = str(server["synchronous_commit"])
    prepared = int(server["prepared_transactions"])
    ours = server["backend_pid"] == server["announced_pid"]
    pooled = "our own session" if ours else "a pooler: name PostgreSQL itself in the URL"
    return (
        *(health_check(name, server[name] == "on", str(server[name])) for name in _DURABLE),
        health_check("synchronous_commit", commit in ("on", "remote_apply"), commit),
        health_check("max_prepared_transactions", prepared == 0, f"{prepared}, 0 wanted"),
        health_check("connection", ours, pooled),
    )


def judge_release(weak_topics: Sequence[str], *, allowed: bool) -> HealthCheck:
    """Judge Kafka 4.3 or newer by the topics that lose all in-sync replicas with one broker.

    4.3.0, 4.3.1 and 4.4.0 end a transaction without the marker of a partition that has no leader
    just then (KAFKA-20734): its records hang, and the next transaction decides about them. Kafka
    shows its exact version to no client, so an operator allows a release that is fixed.
    """
    wanted = "use 4.2, or replication factor 3 with min.insync.replicas=2"
    detail = f"4.3 or newer loses records (KAFKA-20734) of {', '.join(weak_topics)}: {wanted}"
    good = allowed or not weak_topics
    return health_check(RELEASE, good, detail if weak_topics else "4.3 or newer")
