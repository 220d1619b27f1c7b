"""Reads the final state of a run: the contents of PostgreSQL and Kafka at its end."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from outbox.postgres.schema.codes import DECIDED_BY_OF_CODE, DECISION_OF_CODE

Row = dict[str, Any]


class Op(NamedTuple):
    """A stored decision."""

    decision: str
    decided_by: str


@dataclass(slots=True)
class Lost:
    """What PostgreSQL lost with its newest commits: halves and decisions by message id."""

    halves: set[str] = field(default_factory=set)
    ops: dict[str, str] = field(default_factory=dict)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self.halves or message_id in self.ops


@dataclass(slots=True)
class FinalState:
    """Everything by message id, as text."""

    halves: dict[str, Row]
    parked: set[str]
    ops: dict[str, Op]
    committed: dict[str, tuple[int, int]]
    """the place of each message in the commit log: its transaction, and its number in it"""
    held: dict[str, Row]
    already: dict[str, Row]
    halts: dict[str, str]
    """the reason of each halted relay"""
    records: list[Row]
    by_id: dict[str, list[Row]]
    uncommitted: list[Row]
    """with the records of aborted transactions"""
    watermarks: dict[str, dict[str, int]]
    lost: Lost


def read_final_state(run: Path) -> FinalState:
    """Read everything."""
    folder = run / "leftovers"
    halves = {row["id"]: row for row in rows(folder / "halves.jsonl")}
    ids = {row["half_id"]: message_id for message_id, row in halves.items()}
    records, by_id = list(rows(folder / "records.jsonl")), defaultdict[str, list[Row]](list)
    for record in records:
        by_id[record["id"]].append(record)
    return FinalState(
        halves=halves,
        parked={ids[row["half_id"]] for row in rows(folder / "parked.jsonl")},
        ops={ids[row["half_id"]]: _op(row) for row in rows(folder / "ops.jsonl")},
        committed=_commits(folder, ids),
        held={row["id"]: row for row in rows(folder / "held.jsonl")},
        already={row["id"]: row for row in rows(folder / "already.jsonl")},
        halts={
            row["name"]: row["halt_reason"]
            for row in rows(folder / "progress.jsonl")
            if row["halt_reason"]
        },
        records=records,
        by_id=dict(by_id),
        uncommitted=list(rows(folder / "uncommitted.jsonl")),
        watermarks=json.loads((folder / "watermarks.json").read_text()),
        lost=_lost(run / "lost", halves),
    )


def rows(path: Path) -> Iterator[Row]:
    """Yield the lines of a file."""
    with path.open() as file:
        for line in file:
            yield json.loads(line)


def _op(row: Row) -> Op:
    return Op(
        decision=DECISION_OF_CODE[row["decision"]].value,
        decided_by=DECIDED_BY_OF_CODE[row["decided_by"]].value,
    )


def _commits(folder: Path, ids: Mapping[int, str]) -> dict[str, tuple[int, int]]:
    return {
        ids[half_id]: (row["xid"], n)
        for row in rows(folder / "commit_log.jsonl")
        for n, half_id in enumerate(row["half_ids"])
        if half_id in ids
    }


def _lost(folder: Path, halves: Mapping[str, Row]) -> Lost:
    lost = Lost()
    for path in sorted(folder.glob("*.jsonl")):
        for row in rows(path):
            if row["op"] is not None:
                lost.ops[row["id"]] = row["op"]
            if row["half_lost"] and row["id"] not in halves:
                lost.halves.add(row["id"])
    return lost
