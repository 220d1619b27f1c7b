"""The states that a run reached: a clean verdict proves little if there were only few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from chaos.judge.final_state import FinalState

ENTRIES = {"P": "published", "S": "published before", "K": "held"}


def coverage_of(left: FinalState) -> Mapping[str, int]:
    """Count the states in a run's final state."""
    return dict(sorted(Counter(_states(left)).items()))


def _states(left: FinalState) -> Iterator[str]:
    for manifests in left.manifests.values():
        generations = {manifest["gen"] for manifest in manifests if "gen" in manifest}
        yield from ["owner that published"] * len(generations)
        for manifest in manifests:
            yield f"manifest of kind {manifest.get('kind', 'unreadable').lower()}"
            yield from (f"entry {ENTRIES[status]}" for _, status in manifest.get("entries", ()))
    given_up = len(left.uncommitted) - len(left.records)
    yield from ["record of a transaction that was given up"] * given_up
    for message_id in left.already:
        found = "PostgreSQL had lost the decision" if message_id in left.halves else "orphan"
        yield f"learnt from Kafka: {found}"
    yield from (f"decided by {op.decided_by}: {op.decision}" for op in left.ops.values())
    yield from ["parked"] * len(left.parked)
    for attempts in left.attempts.values():
        yield from (f"check answered {attempt['outcome']}" for attempt in attempts)
