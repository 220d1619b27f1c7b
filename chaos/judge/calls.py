"""The history of a run, read back: what was asked, what was answered, what was seen.

Time-outs, resets and 5xx are ``info``: they may have happened or not, and prove nothing.
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
SHOWN: Final = {"COMMITTED": "COMMIT", "PUBLISHED": "COMMIT", "ROLLED_BACK": "ROLLBACK"}


class Prepared(NamedTuple):
    """A prepare that was answered with 201."""

    tx: str
    topic: str
    key: str | None
    sha: str
    headers: str


@dataclass(slots=True)
class Told:
    """What the answers and calls about one message say; times are monotonic seconds."""

    decisions: set[str] = field(default_factory=set)
    """decisions that an answer showed to stand"""
    committed_by: float = inf
    """the first moment at which somebody was told that it is committed"""
    commit_sent: float = inf
    """the first moment at which a COMMIT was sent"""
    sent: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Calls:
    """Everything the processes of a run have noted."""

    prepared: dict[str, Prepared] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=lambda: defaultdict(Told))
    refused: set[str] = field(default_factory=set)
    """transactions of which every prepare was refused"""
    doubtful: set[str] = field(default_factory=set)
    """transactions of which a prepare was answered or may have happened"""
    truth: dict[str, str] = field(default_factory=dict)
    answered: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    reads: dict[str, list[tuple[str, int, int, str | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    faults: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    stalls: list[tuple[float, float]] = field(default_factory=list)
    """when something stood still: the span of every fault that is no kill"""
    messages: int = 0
    """prepares that were acknowledged, without replays"""


def read_calls(run: Path) -> Calls:
    """Read every process's file, each in its own order; a torn line is left out."""
    calls = Calls()
    for path in sorted((run / "history").glob("*.jsonl")):
        _Reader(calls).read(events(path))
    calls.refused -= calls.doubtful
    calls.messages = len(calls.prepared)
    return calls


def events(path: Path) -> Iterator[Event]:
    """Yield the events of one process."""
    with path.open() as file:
        for line in file:
            with suppress(json.JSONDecodeError):
                yield json.loads(line)


class _Reader:
    """Reads one process; keeps what was asked until its answer comes."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._open: dict[int, Event] = {}

    def read(self, found: Iterable[Event]) -> None:
        for event in found:
            if event["e"] == "invoke" and event["f"] in ("prepare", "end"):
                self._open[event["n"]] = event
                self._asked(event)
            elif event["f"] in ("prepare", "end"):
                answered = self._prepare if event["f"] == "prepare" else self._end
                answered(self._open.pop(event["n"]), event, event["e"])
            else:
                self._note(event)
        for event in self._open.values():
            self._never_answered(event)

    def _note(self, event: Event) -> None:
        """Note what is no call."""
        calls = self._calls
        match event["f"]:
            case "local":
                calls.truth |= {each["tx"]: each["decided"] for each in event["items"]}
            case "check":
                self._checked(event)
            case "read":
                reads = calls.reads[event["reader"]]
                reads.extend((event["topic"], *record) for record in event["recs"])
            case "fault":
                self._fault(event)
            case "back":
                calls.recoveries[event["kind"]].append(event["seconds"])

    def _fault(self, event: Event) -> None:
        if event["e"] == "invoke":
            self._open[event["n"]] = event
            return
        began = self._open.pop(event["n"], event)
        skipped = "skipped" in event.get("facts", {})
        self._calls.faults[event["kind"]] += event["e"] == "ok" and not skipped
        if event["kind"] not in KILLING:
            self._calls.stalls.append((began["t"], event["t"]))

    def _asked(self, event: Event) -> None:
        if event["f"] != "end":
            return
        for item in event["items"]:
            told = self._calls.told[item["id"]]
            told.sent.add(item["d"])
            if item["d"] == "COMMIT":
                told.commit_sent = min(told.commit_sent, event["t"])

    def _never_answered(self, event: Event) -> None:
        if event["f"] == "prepare":
            self._calls.doubtful |= {item["tx"] for item in event["items"]}

    def _prepare(self, asked: Event, event: Event, outcome: str) -> None:
        transactions = [item["tx"] for item in asked["items"]]
        if outcome == "info":
            self._calls.doubtful.update(transactions)
        elif outcome == "fail":
            self._calls.refused.update(transactions)
        else:
            for item, answer in zip(asked["items"], event["items"], strict=True):
                self._prepared(item, answer)

    def _prepared(self, item: Event, answer: Mapping[str, Any]) -> None:
        if "id" in answer:
            facts = [item[name] for name in ("topic", "key", "sha", "headers")]
            self._calls.prepared[answer["id"]] = Prepared(item["tx"], *facts)
        known = "id" in answer or answer["status"] >= 500
        (self._calls.doubtful if known else self._calls.refused).add(item["tx"])

    def _end(self, asked: Event, event: Event, outcome: str) -> None:
        if outcome != "ok":
            return
        for item, answer in zip(asked["items"], event["items"], strict=True):
            self._ended(item, answer, event["t"])

    def _ended(self, item: Event, answer: Mapping[str, Any], at: float) -> None:
        told = self._calls.told[item["id"]]
        stands = answer.get("decision")
        if answer["status"] == 200:
            stands = SHOWN.get(answer["state"])
            if item["d"] != "UNKNOWN":
                told.decisions.add(item["d"])
        if stands is not None:
            told.decisions.add(stands)
        if stands == "COMMIT":
            told.committed_by = min(told.committed_by, at)

    def _checked(self, event: Event) -> None:
        for item in event["items"]:
            self._calls.answered[item["id"]].append((event["t"], item["answered"]))
