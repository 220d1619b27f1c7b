"""Reads the history of a run: its calls and their answers, its checks, its faults.

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

Event = dict[str, Any]
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
    """the time of the first COMMIT that was sent, by its producer or in answer to a check"""
    sent: set[str] = field(default_factory=set)
    """decisions of its producer"""
    answered: set[str] = field(default_factory=set)
    """decisions of its check endpoint"""


@dataclass(slots=True)
class RecordedCalls:
    """Everything that the processes of a run recorded."""

    prepared: dict[str, Prepared] = field(default_factory=dict)
    by_message: dict[str, MessageCalls] = field(default_factory=lambda: defaultdict(MessageCalls))
    refused: set[str] = field(default_factory=set)
    """transactions whose prepares were all refused"""
    doubtful: set[str] = field(default_factory=set)
    """transactions with a prepare that was answered or may have had its effect"""
    faults: Counter[str] = field(default_factory=Counter)
    """the faults that met something, by kind"""
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    """the ends of programs, by role and reason"""


def read_calls(run: Path) -> RecordedCalls:
    """Read the file of every process; a torn line is left out."""
    calls = RecordedCalls()
    for path in sorted((run / "history").glob("*.jsonl")):
        _CallReader(calls).read(_events(path))
    calls.refused -= calls.doubtful
    return calls


def _events(path: Path) -> Iterator[Event]:
    with path.open() as file:
        for line in file:
            with suppress(json.JSONDecodeError):
                yield json.loads(line)


class _CallReader:
    """Reads one process; keeps each call until its answer comes."""

    def __init__(self, calls: RecordedCalls) -> None:
        self._calls = calls
        self._open: dict[int, Event] = {}

    def read(self, found: Iterable[Event]) -> None:
        for event in found:
            if event["f"] in ("prepare", "end"):
                self._call(event)
            else:
                self._note(event)
        for event in self._open.values():
            if event["f"] == "prepare":
                self._calls.doubtful |= {item["tx"] for item in event["items"]}

    def _call(self, event: Event) -> None:
        if event["e"] == "invoke":
            self._open[event["n"]] = event
            self._sent(event)
            return
        call = self._open.pop(event["n"])
        if event["f"] == "prepare":
            self._prepare(call, event)
        elif event["e"] == "ok":
            self._end(call, event)

    def _note(self, event: Event) -> None:
        """Record an event that is no call."""
        match event["f"], event["e"]:
            case "check", _:
                self._checked(event)
            case "fault", "ok":
                self._calls.faults[event["kind"]] += event["met"]
            case "death", _:
                self._calls.ends[event["target"].partition("-")[0], event["why"]] += 1

    def _sent(self, event: Event) -> None:
        if event["f"] == "end":
            for item in event["items"]:
                message = self._calls.by_message[item["id"]]
                message.sent.add(item["d"])
                if item["d"] == "COMMIT":
                    message.commit_sent = min(message.commit_sent, event["t"])

    def _prepare(self, call: Event, event: Event) -> None:
        transactions = [item["tx"] for item in call["items"]]
        match event["e"]:
            case "info":
                self._calls.doubtful.update(transactions)
            case "fail":
                self._calls.refused.update(transactions)
            case _:
                for item, answer in zip(call["items"], event["items"], strict=True):
                    self._prepared(item, answer)

    def _prepared(self, item: Event, answer: Mapping[str, Any]) -> None:
        if "id" in answer:
            decided = self._calls.by_message[answer["id"]]
            for message_id, one in zip(answer["ids"], [item, *item["followers"]], strict=True):
                facts = [one[name] for name in ("topic", "key", "sha", "headers")]
                self._calls.prepared[message_id] = Prepared(item["tx"], *facts)
                self._calls.by_message[message_id] = decided
        if "ended" in answer:
            self._calls.by_message[answer["ended"]].decisions.add(answer["decision"])
        known = "id" in answer or "ended" in answer or answer["status"] >= 500
        (self._calls.doubtful if known else self._calls.refused).add(item["tx"])

    def _end(self, call: Event, event: Event) -> None:
        for item, answer in zip(call["items"], event["items"], strict=True):
            message = self._calls.by_message[item["id"]]
            shown = answer.get("decision")
            if answer["status"] == 200:
                shown = SHOWN.get(answer["state"])
                if item["d"] != "UNKNOWN":
                    message.decisions.add(item["d"])
            if shown is not None:
                message.decisions.add(shown)
            if shown == "COMMIT":
                message.committed_by = min(message.committed_by, event["t"])

    def _checked(self, event: Event) -> None:
        for item in event["items"]:
            message = self._calls.by_message[item["id"]]
            message.answered.add(item["answered"])
            if item["answered"] == "COMMIT":
                message.commit_sent = min(message.commit_sent, event["t"])
