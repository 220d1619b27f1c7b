"""Reads the history of a run: its calls, their answers and what consumers saw.

Time-outs, resets and 5xx are ``info``: such a call may have had its effect, and proves nothing.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from chaos.judge.invariants import KILLING

Event = dict[str, Any]
DIED_AT_FAILPOINT: Final = "failpoint"
"""The kills are counted by processes; this one also as a state that a run reaches."""
HARMLESS: Final = frozenset({"pass_leaf", "long_transaction", "other_database"})
"""Faults of PostgreSQL that break no session; the last one kills checkers, which is counted."""
ON_THE_WAY_OF_A_CHECK: Final = ("checker", "postgres", "check")
"""Targets whose faults stop checks: Kafka and the APIs take no part in them."""
SHOWN: Final = {"COMMITTED": "COMMIT", "PUBLISHED": "COMMIT", "ROLLED_BACK": "ROLLBACK"}


class Prepared(NamedTuple):
    """A prepare with the answer 201."""

    tx: str
    topic: str
    key: str | None
    sha: str
    headers: str


@dataclass(slots=True)
class MessageCalls:
    """The calls and answers about one message; times are monotonic seconds."""

    decisions: set[str] = field(default_factory=set)
    """decisions that an answer showed as final"""
    committed_by: float = inf
    """the time of the first answer that showed it as committed"""
    commit_sent: float = inf
    """the time of the first COMMIT that was sent"""
    sent: set[str] = field(default_factory=set)


@dataclass(slots=True)
class RecordedCalls:
    """Everything that the processes of a run recorded."""

    prepared: dict[str, Prepared] = field(default_factory=dict)
    by_message: dict[str, MessageCalls] = field(default_factory=lambda: defaultdict(MessageCalls))
    refused: set[str] = field(default_factory=set)
    """transactions whose prepares were all refused"""
    doubtful: set[str] = field(default_factory=set)
    """transactions with a prepare that was answered or may have had its effect"""
    accepted_late: set[str] = field(default_factory=set)
    """messages that a repeated prepare was accepted for after their decision was shown"""
    truth: dict[str, str] = field(default_factory=dict)
    answered: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    reads: dict[str, list[tuple[str, int, int, str | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    faults: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    losses: list[tuple[float, float]] = field(default_factory=list)
    """the end of each checker's life, and the time span of each fault that breaks its sessions"""
    stalls: list[tuple[float, float]] = field(default_factory=list)
    """the time span of each fault, except kills, that stops checks"""
    assigned: dict[str, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    """the partitions that each live reader was to read"""
    messages: int = 0
    """acknowledged prepares, without replays"""

    def meant(self, message_id: str) -> set[str]:
        """Return the decisions that anybody sent or answered for a message."""
        found = self.by_message.get(message_id)
        answers = {answered for _, answered in self.answered.get(message_id, ())}
        return (found.sent if found else set[str]()) | answers


def read_calls(run: Path) -> RecordedCalls:
    """Read the file of every process; a torn line is left out."""
    calls = RecordedCalls()
    for path in sorted((run / "history").glob("*.jsonl")):
        _CallReader(calls).read(events(path))
    calls.refused -= calls.doubtful
    calls.messages = len(calls.prepared)
    return calls


def events(path: Path) -> Iterator[Event]:
    """Yield the events of one process."""
    with path.open() as file:
        for line in file:
            with suppress(json.JSONDecodeError):
                yield json.loads(line)


class _CallReader:
    """Reads one process; keeps each call until its answer comes."""

    def __init__(self, calls: RecordedCalls) -> None:
        self._calls = calls
        self._open: dict[int, Event] = {}
        self._decided_at: dict[str, float] = {}

    def read(self, found: Iterable[Event]) -> None:
        for event in found:
            if event["e"] == "invoke" and event["f"] in ("prepare", "end"):
                self._open[event["n"]] = event
                self._called(event)
            elif event["f"] in ("prepare", "end"):
                answered = self._prepare if event["f"] == "prepare" else self._end
                answered(self._open.pop(event["n"]), event, event["e"])
            else:
                self._note(event)
        for event in self._open.values():
            self._never_answered(event)

    def _note(self, event: Event) -> None:
        """Record an event that is not a call."""
        calls = self._calls
        match event["f"]:
            case "local":
                calls.truth |= {each["tx"]: each["decided"] for each in event["items"]}
            case "check":
                self._checked(event)
            case "assigned":
                places = calls.assigned[event["reader"]]
                places.extend((topic, partition) for topic, partition in event["places"])
            case "read":
                reads = calls.reads[event["reader"]]
                reads.extend((event["topic"], *record) for record in event["recs"])
            case "fault":
                self._fault(event)
            case "death":
                calls.losses.append((event["t"], event["t"]))
            case "back":
                calls.recoveries[event["kind"]].append(event["seconds"])

    def _fault(self, event: Event) -> None:
        if event["e"] == "invoke":
            self._open[event["n"]] = event
            return
        began = self._open.pop(event["n"], event)
        if event["kind"] in KILLING:
            if event["e"] == "ok" and "facts" not in event and event["kind"] == DIED_AT_FAILPOINT:
                self._calls.faults[DIED_AT_FAILPOINT] += 1
            return
        role, harmless = event["target"].partition("-")[0], event["kind"] in HARMLESS
        if role in ON_THE_WAY_OF_A_CHECK and not harmless:
            self._calls.stalls.append((began["t"], event["t"]))
        if role == "postgres" and not harmless:
            self._calls.losses.append((began["t"], event["t"]))
        if event["e"] == "ok" and event.get("facts", {}).get("met"):
            self._calls.faults[event["kind"]] += 1

    def _called(self, event: Event) -> None:
        if event["f"] != "end":
            return
        for item in event["items"]:
            message = self._calls.by_message[item["id"]]
            message.sent.add(item["d"])
            if item["d"] == "COMMIT":
                message.commit_sent = min(message.commit_sent, event["t"])

    def _never_answered(self, event: Event) -> None:
        if event["f"] == "prepare":
            self._calls.doubtful |= {item["tx"] for item in event["items"]}

    def _prepare(self, call: Event, event: Event, outcome: str) -> None:
        transactions = [item["tx"] for item in call["items"]]
        if outcome == "info":
            self._calls.doubtful.update(transactions)
        elif outcome == "fail":
            self._calls.refused.update(transactions)
        else:
            for item, answer in zip(call["items"], event["items"], strict=True):
                self._prepared(item, answer)
                self._note_late(call["t"], answer)

    def _prepared(self, item: Event, answer: Mapping[str, Any]) -> None:
        if "id" in answer:
            facts = [item[name] for name in ("topic", "key", "sha", "headers")]
            self._calls.prepared[answer["id"]] = Prepared(item["tx"], *facts)
        if "ended" in answer:
            self._calls.by_message[answer["ended"]].decisions.add(answer["decision"])
        known = "id" in answer or "ended" in answer or answer["status"] >= 500
        (self._calls.doubtful if known else self._calls.refused).add(item["tx"])

    def _note_late(self, sent: float, answer: Mapping[str, Any]) -> None:
        """Note a prepare that was accepted though its message was already shown as decided."""
        message_id = answer.get("id")
        if message_id is not None and sent > self._decided_at.get(message_id, inf):
            self._calls.accepted_late.add(message_id)

    def _end(self, call: Event, event: Event, outcome: str) -> None:
        if outcome != "ok":
            return
        for item, answer in zip(call["items"], event["items"], strict=True):
            self._ended(item, answer, event["t"])

    def _ended(self, item: Event, answer: Mapping[str, Any], at: float) -> None:
        message = self._calls.by_message[item["id"]]
        shown = answer.get("decision")
        if answer["status"] == 200:
            shown = SHOWN.get(answer["state"])
            if item["d"] != "UNKNOWN":
                message.decisions.add(item["d"])
        if shown is not None:
            message.decisions.add(shown)
            self._decided_at.setdefault(item["id"], at)
        if shown == "COMMIT":
            message.committed_by = min(message.committed_by, at)

    def _checked(self, event: Event) -> None:
        for item in event["items"]:
            self._calls.answered[item["id"]].append((event["t"], item["answered"]))
