"""Live readers: each record was received once, in order, and none was skipped.

After Jepsen's Kafka workload: inconsistent offset, duplicate, backward poll, skipped poll.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict

from chaos.judge.final_state import FinalState
from chaos.judge.findings import Findings
from chaos.judge.recorded_calls import RecordedCalls

Place = tuple[str, int]


def judge_consumer_reads(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """Compare each live reader with the final scan of its kind."""
    scans = {"committed": left.records, "uncommitted": left.uncommitted}
    for reader, seen in calls.reads.items():
        final: dict[Place, dict[int, str]] = defaultdict(dict)
        for record in scans[reader]:
            final[record["topic"], record["partition"]][record["offset"]] = record["id"]
        by_place: dict[Place, list[tuple[int, str | None]]] = defaultdict(list)
        for topic, partition, offset, message_id in seen:
            by_place[topic, partition].append((offset, message_id))
        for place, given in by_place.items():
            _partition(findings, (reader, *place), given, final[place])


def _partition(
    findings: Findings,
    where: tuple[str, str, int],
    given: list[tuple[int, str | None]],
    final: dict[int, str],
) -> None:
    there, last = sorted(final), -1
    for offset, message_id in given:
        about = {"where": where, "offset": offset, "id": message_id}
        findings.check("poll", offset > last, "a backward poll or a duplicate", **about)
        findings.check(
            "poll", final.get(offset) == message_id, "another record at this offset", **about
        )
        skipped = there[bisect_right(there, last) : bisect_left(there, offset)]
        findings.check("poll", not skipped, "a record was skipped", skipped=skipped[:3], **about)
        last = max(last, offset)
