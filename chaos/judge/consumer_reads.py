"""Live readers: each record was received once, in order, and none was skipped.

A reader that ended before it had received the last record of a partition proves nothing.

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
    for reader in scans:
        seen = calls.reads[reader]
        final: dict[Place, dict[int, str]] = defaultdict(dict)
        for record in scans[reader]:
            final[record["topic"], record["partition"]][record["offset"]] = record["id"]
        by_place: dict[Place, list[tuple[int, str | None]]] = defaultdict(list)
        for topic, partition, offset, message_id in seen:
            by_place[topic, partition].append((offset, message_id))
        for place, given in by_place.items():
            _partition(findings, (reader, *place), given, final[place])
        if seen and not calls.assigned[reader]:
            findings.unproven.append(f"nobody noted what the reader {reader} was to read")
        for place in calls.assigned[reader]:
            last = max((offset for offset, _ in by_place.get(place, ())), default=-1)
            _ended_early(findings, (reader, *place), last, final.get(place, {}))


def _ended_early(
    findings: Findings, where: tuple[str, str, int], last: int, final: dict[int, str]
) -> None:
    """Note the records of a partition that a reader was given the time to receive, and did not."""
    missing = sum(1 for offset in final if offset > last)
    if missing:
        reader, topic, partition = where
        findings.unproven.append(
            f"the reader {reader} ended before {missing} records of {topic}/{partition}"
        )


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
