"""Reads the final state of a run: the contents of PostgreSQL and Kafka at its end."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from outbox.messages.message_id import LEAF_BITS, HalfId, leaf_in, parse_message_id
from outbox.postgres.schema.codes import DECIDED_BY_OF_CODE, DECISION_OF_CODE

Row = dict[str, Any]
PositionOf = tuple[int, int]
UNSTORED: Final = "half "
"""begins the placeholder of a message whose half is not stored"""


class Op(NamedTuple):
    """A stored decision."""

    decision: str
    decided_by: str
    decided_at: float
    xid: int


@dataclass(slots=True)
class Lost:
    """What PostgreSQL lost with its newest commits: halves and decisions by message id."""

    halves: set[str] = field(default_factory=set)
    """listed as lost with their decisions, and not stored; others may go with their leaf later"""
    ops: dict[str, str] = field(default_factory=dict)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self.halves or message_id in self.ops


@dataclass(slots=True)
class FinalState:
    """Everything by message id, as text."""

    halves: dict[str, Row]
    ops: dict[str, Op]
    committed: dict[str, tuple[int, int, int]]
    """(shard, xid, n) of each commit log entry; ``n`` counts from 1."""
    commit_counts: dict[str, int]
    commit_log: dict[int, list[tuple[PositionOf, str]]]
    """Each shard's ids in commit order with their positions."""
    progress: dict[int, Row]
    held: dict[str, Row]
    already: dict[str, Row]
    attempts: dict[str, list[Row]]
    records: list[Row]
    by_id: dict[str, list[Row]]
    uncommitted: list[Row]
    manifests: dict[int, list[Row]]
    watermarks: dict[str, dict[str, int]]
    lost: Lost
    parked: dict[str, Row]
    retired: frozenset[int]
    """the leaves that retention removed"""
    began: dict[int, Row]
    """the progress of each shard before the run, if the installation has lived"""
    resolved: list[str]
    """the reason of each halt that an operator resolved"""

    def op(self, message_id: str) -> Op | None:
        """Return the stored decision."""
        return self.ops.get(message_id)

    def is_retired(self, message_id: str) -> bool:
        """Return whether a message went with its leaf."""
        return message_id not in self.halves and self.is_leaf_retired(message_id)

    def is_leaf_retired(self, message_id: str) -> bool:
        """Return whether the leaf of a message went; a parked one may outlive it."""
        return _leaf(message_id) in self.retired

    def is_log_retired(self, *xids: int) -> bool:
        """Return whether the commit log between these transactions went, in part at least."""
        leaves = [xid >> LEAF_BITS for xid in xids]
        return any(min(leaves) <= leaf <= max(leaves) for leaf in self.retired)


def read_final_state(run: Path) -> FinalState:
    """Read everything. Raises FileNotFoundError for a run without a final state."""
    folder = run / "leftovers"
    parked = {row["id"]: row for row in rows(folder / "parked.jsonl")}
    halves = parked | {row["id"]: row for row in rows(folder / "halves.jsonl")}
    records = list(rows(folder / "records.jsonl"))
    manifests = _grouped(rows(folder / "manifests.jsonl"), lambda row: row["shard"])
    retired = frozenset(row["leaf"] for row in rows(folder / "retired.jsonl"))
    ids = {row["half_id"]: message_id for message_id, row in halves.items()}
    ids = {**_retired_ids(manifests, retired), **ids}
    committed, counts, log = _commits(folder, ids)
    return FinalState(
        halves=halves,
        ops={_id(ids, row["half_id"]): _op(row) for row in rows(folder / "ops.jsonl")},
        committed=committed,
        commit_counts=counts,
        commit_log=log,
        progress=_relays(rows(folder / "progress.jsonl")),
        held={row["id"]: row for row in rows(folder / "held.jsonl")},
        already={row["id"]: row for row in rows(folder / "already.jsonl")},
        attempts=_grouped(rows(folder / "attempts.jsonl"), lambda row: _id(ids, row["half_id"])),
        records=records,
        by_id=_grouped(records, lambda row: row["id"]),
        uncommitted=list(rows(folder / "uncommitted.jsonl")),
        manifests=manifests,
        watermarks=json.loads((folder / "watermarks.json").read_text()),
        lost=_lost(run / "lost", halves),
        parked=parked,
        retired=retired,
        began=_relays(json.loads((run / "start.json").read_text())["progress"]),
        resolved=[row["halt_reason"] for row in rows(folder / "resolved.jsonl")],
    )


def rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines."""
    with path.open() as file:
        for line in file:
            yield json.loads(line)


def _retired_ids(manifests: Mapping[int, Iterable[Row]], retired: frozenset[int]) -> dict[int, str]:
    """Return the message ids of retired halves: the commit log may still list some of them."""
    entries = (
        each
        for shard in manifests.values()
        for manifest in shard
        for each, _ in manifest.get("entries", ())
        if retired
    )
    halves = ((parse_message_id(each)[0], each) for each in entries)
    return {half: each for half, each in halves if leaf_in(half) in retired}


def _leaf(message_id: str) -> int | None:
    """Return the leaf of a message, also of a placeholder; None for what is no message id."""
    try:
        if message_id.startswith(UNSTORED):
            return leaf_in(HalfId(int(message_id.removeprefix(UNSTORED))))
        return leaf_in(parse_message_id(message_id)[0])
    except ValueError:
        return None


def _relays(progress: Iterable[Row]) -> dict[int, Row]:
    """Return the progress of the relays by shard."""
    return {
        int(row["name"].partition(":")[2]): row
        for row in progress
        if row["name"].startswith("relay:")
    }


def _grouped(found: Any, key: Any) -> dict[Any, list[Row]]:
    grouped: dict[Any, list[Row]] = defaultdict(list)
    for row in found:
        grouped[key(row)].append(row)
    return dict(grouped)


def _id(ids: Mapping[int, str], half_id: int) -> str:
    """Return the message id of a half, or a placeholder for one that is not stored."""
    return ids.get(half_id) or f"{UNSTORED}{half_id}"


def _op(row: Row) -> Op:
    return Op(
        decision=DECISION_OF_CODE[row["decision"]].value,
        decided_by=DECIDED_BY_OF_CODE[row["decided_by"]].value,
        decided_at=row["decided_at"],
        xid=row["xid"],
    )


def _commits(
    folder: Path, ids: Mapping[int, str]
) -> tuple[
    dict[str, tuple[int, int, int]], dict[str, int], dict[int, list[tuple[PositionOf, str]]]
]:
    committed: dict[str, tuple[int, int, int]] = {}
    counts: dict[str, int] = defaultdict(int)
    log: dict[int, list[tuple[PositionOf, str]]] = defaultdict(list)
    for row in rows(folder / "commit_log.jsonl"):
        for n, half_id in enumerate(row["half_ids"], 1):
            message_id = _id(ids, half_id)
            committed[message_id] = (row["shard"], row["xid"], n)
            counts[message_id] += 1
            log[row["shard"]].append(((row["xid"], n), message_id))
    return committed, counts, log


def _lost(folder: Path, halves: Mapping[str, Row]) -> Lost:
    lost = Lost()
    for path in sorted(folder.glob("*.jsonl")) if folder.exists() else ():
        for row in rows(path):
            if row.get("op") is not None:
                lost.ops[row["id"]] = row["op"]
            if row["half_lost"] and row["id"] not in halves:
                lost.halves.add(row["id"])
    return lost
