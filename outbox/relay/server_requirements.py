"""Server settings under which no promise holds: the relay does not start, the doctor fails.

Either a crash may take back what was acknowledged, or Kafka may let a late frame into the next
transaction, or the manifests may vanish.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

VERIFICATION: Final = "transaction.partition.verification.enable"
UNTOLD: Final = "-"
"""A setting that the server does not show us is not judged."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One setting, whether it is safe, and what was found."""

    setting: str
    safe: bool
    detail: str


def judge_postgres(server: Mapping[str, Any]) -> tuple[Judgement, ...]:
    """Judge a server as one of our own sessions sees it (statement `server`)."""
    commit = str(server["synchronous_commit"])
    prepared = int(server["prepared_transactions"])
    ours = server["backend_pid"] == server["announced_pid"]
    pooled = "a session of our own" if ours else "a pooler: name PostgreSQL itself in the URL"
    return (
        *(Judgement(name, server[name] == "on", str(server[name])) for name in _DURABLE),
        Judgement("synchronous_commit", commit in ("on", "remote_apply"), commit),
        Judgement("max_prepared_transactions", prepared == 0, f"{prepared}, 0 wanted"),
        Judgement("connection", ours, pooled),
    )


_DURABLE: Final = ("fsync", "full_page_writes")


def judge_kafka(
    *, cleanup_policy: str, partition_verification: str, older_than_4: bool
) -> tuple[Judgement, ...]:
    """Judge the brokers, and how they clean `outbox.progress`."""
    version = "older than 4.0" if older_than_4 else "4.0 or newer"
    return (
        Judgement("kafka version", not older_than_4, version),
        Judgement(VERIFICATION, partition_verification != "false", partition_verification),
        Judgement("cleanup.policy", cleanup_policy in ("delete", UNTOLD), cleanup_policy),
    )
