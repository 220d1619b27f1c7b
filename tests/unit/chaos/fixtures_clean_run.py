"""A clean run as the judge reads it: two commits of one key, and a rollback by a check.

The rollback is of two messages under one decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.judge import findings_of
from chaos.judge.calls import MessageCalls, Prepared, RecordedCalls
from chaos.judge.final_state import FinalState, Lost, Op, Row

TOPIC = "chaos.three"
PLACE = f"{TOPIC}/0"
KEY, KEY_HEX = "a2V5", "6b6579"
DONE = {"undecided": 0, "unpublished": 0, "held": 0}


@dataclass(slots=True)
class Run:
    """What a run left and recorded; a test breaks it."""

    left: FinalState
    calls: RecordedCalls
    ended: dict[str, Any]

    def violated(self) -> set[str]:
        """Return the invariants that do not hold."""
        found = findings_of(self.left, self.calls, self.ended).invariants
        return {name for name, each in found.items() if each.violations}


def clean_run() -> Run:
    """Return a run without a violation."""
    records = [_record("one", 0), _record("two", 1)]
    calls = RecordedCalls(
        prepared={each: Prepared(each, TOPIC, KEY, f"sha-{each}", "h") for each in NAMES},
        refused={"refused"},
    )
    calls.by_message["one"] = _committed(sent=1.0, shown=2.0)
    calls.by_message["two"] = _committed(sent=3.0, shown=4.0)
    calls.by_message["three"] = MessageCalls(answered={"UNKNOWN", "ROLLBACK"})
    calls.by_message["four"] = calls.by_message["three"]
    left = FinalState(
        halves={each: _half(each) for each in NAMES},
        parked=set(),
        ops={
            "one": Op("COMMIT", "producer"),
            "two": Op("COMMIT", "producer"),
            "three": Op("ROLLBACK", "check"),
            "four": Op("ROLLBACK", "check"),
        },
        committed={"one": (10, 0), "two": (11, 0)},
        held={},
        already={},
        halts={},
        records=records,
        by_id={record["id"]: [record] for record in records},
        uncommitted=[dict(record) for record in records],
        watermarks={PLACE: {"start": 0, "stable": 3, "end": 3}},
        lost=Lost(),
    )
    return Run(left, calls, {"left": dict(DONE)})


NAMES = ("one", "two", "three", "four")


def _half(name: str) -> Row:
    return {
        "id": name,
        "half_id": NAMES.index(name),
        "leader_id": NAMES.index("three") if name == "four" else None,
        "topic": TOPIC,
        "key": KEY_HEX,
        "sha": f"sha-{name}",
        "content_digest": f"digest-{name}",
        "tx": name,
        "producer_group": "chaos-batch",
    }


def _record(name: str, offset: int) -> Row:
    return {**_half(name), "headers": "h", "partition": 0, "offset": offset}


def _committed(*, sent: float, shown: float) -> MessageCalls:
    return MessageCalls(decisions={"COMMIT"}, committed_by=shown, commit_sent=sent, sent={"COMMIT"})
