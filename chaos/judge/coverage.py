"""The states that a run reached: a clean verdict proves little if there were only few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from chaos.judge.final_state import FinalState
from chaos.judge.recorded_calls import RecordedCalls
from chaos.judge.retirement import retired

ORPHAN = "learnt from Kafka: orphan"
DECISION_LOST = "learnt from Kafka: PostgreSQL had lost the decision"
RETIRED = "message retired with its leaf"
RETIRED_LEAF = "leaf retired"
COMMITTED = "committed message"
REFUSED = "prepare refused"
ENTRIES = {"P": "published", "S": "published before", "K": "held"}


def coverage_of(left: FinalState, calls: RecordedCalls) -> Mapping[str, int]:
    """Count the states in a run's final state."""
    found = Counter(_states(left))
    found[RETIRED] = len(retired(left, calls))
    found[COMMITTED] = len(left.committed)
    found[REFUSED] = len(calls.refused)
    return dict(sorted((+found).items()))


def missing(
    wanted: Iterable[str],
    reached: Mapping[str, int],
    calls: RecordedCalls,
    kills: Mapping[str, int],
) -> list[str]:
    """Return the wanted states that a run did not reach.

    ``fault KIND`` is a fault that met something, ``ROLE killed`` a kill of a working program.
    """
    met = Counter(reached)
    met.update({f"fault {kind}": count for kind, count in calls.faults.items()})
    for end, count in kills.items():
        met[f"{end.partition(':')[0]} killed"] += count
    return [state for state in wanted if not met[state]]


def _states(left: FinalState) -> Iterator[str]:
    for manifests in left.manifests.values():
        generations = {manifest["gen"] for manifest in manifests if "gen" in manifest}
        yield from ["owner that published"] * len(generations)
        for manifest in manifests:
            yield f"manifest of kind {manifest.get('kind', 'unreadable').lower()}"
            yield from (f"entry {ENTRIES[status]}" for _, status in manifest.get("entries", ()))
    given_up = len(left.uncommitted) - len(left.records)
    yield from ["record of a transaction that was given up"] * given_up
    healing = sum(1 for record in left.uncommitted if record.get("heal"))
    yield from ["record that ended an open transaction"] * healing
    for message_id in left.already:
        yield DECISION_LOST if message_id in left.halves else ORPHAN
    yield from (f"decided by {op.decided_by}: {op.decision}" for op in left.ops.values())
    yield from ["parked"] * len(left.parked)
    yield from (f"halt resolved: {reason}" for reason in left.resolved)
    yield from [RETIRED_LEAF] * len(left.retired)
    for attempts in left.attempts.values():
        yield from (f"check answered {attempt['outcome']}" for attempt in attempts)
