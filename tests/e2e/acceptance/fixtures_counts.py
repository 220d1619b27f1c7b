"""The number of messages by group, topic and state, read from the tables."""

from __future__ import annotations

from collections import Counter

from tests.e2e.fixtures_service import Service

COUNTS = """
SELECT g.name, t.name, CASE
    WHEN o.decision = 2 THEN 'ROLLED_BACK'
    WHEN o.decision = 1 AND EXISTS (
        SELECT FROM outbox.publication_log p WHERE e.half_id = ANY (p.half_ids)) THEN 'PUBLISHED'
    WHEN o.decision = 1 THEN 'COMMITTED'
    WHEN EXISTS (
        SELECT FROM outbox.parked_message p
        WHERE p.half_id = e.half_id AND p.resumed_at IS NULL) THEN 'PARKED'
    ELSE 'PREPARED' END, count(*)
FROM outbox.half_message e JOIN outbox.producer_group g ON g.id = e.producer_group_id
    JOIN outbox.topic t ON t.id = e.topic_id LEFT JOIN outbox.op_message o USING (half_id)
WHERE g.name = ANY (%s) GROUP BY 1, 2, 3
"""


class Counts(Counter[tuple[str, str, str]]):
    """Messages by group, topic and state."""

    def by(self, *places: int) -> Counter[tuple[str, ...]]:
        """Return the sums by some of group (0), topic (1) and state (2)."""
        sums: Counter[tuple[str, ...]] = Counter()
        for name, number in self.items():
            sums[tuple(name[place] for place in places)] += number
        return sums


def counts(service: Service, *groups: str) -> Counts:
    """Count the messages of producer groups in the tables."""
    return Counts({(g, t, state): n for g, t, state, n in service.rows(COUNTS, list(groups))})
