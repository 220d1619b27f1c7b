"""Builds small run folders in the harness's format, from rows that a test may change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from outbox.messages.message_id import HalfId, Nonce, Shard, half_id_of, message_id_text

Row = dict[str, Any]
MONO: Final = 100.0
SHARD: Final = Shard(1)
TABLES: Final = (
    *("halves", "parked", "ops", "commit_log", "progress", "held", "already", "attempts"),
    *("retired", "resolved", "records", "uncommitted", "manifests"),
)


@dataclass(slots=True)
class RunFolder:
    """The files of a run as rows that a test may change before it writes them."""

    path: Path
    facts: Row = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})
    history: dict[str, list[Row]] = field(default_factory=dict)
    watermarks: dict[str, Row] = field(default_factory=dict)
    lost: list[Row] = field(default_factory=list)
    began: list[Row] = field(default_factory=list)

    def write(self) -> Path:
        """Write everything; return the folder."""
        for name in ("history", "leftovers", "lost"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        (self.path / "run.json").write_text(json.dumps(self.facts))
        (self.path / "start.json").write_text(json.dumps({"progress": self.began}))
        (self.path / "leftovers" / "watermarks.json").write_text(json.dumps(self.watermarks))
        for name, rows in self.tables.items():
            _write(self.path / "leftovers" / f"{name}.jsonl", rows)
        for name, rows in self.history.items():
            _write(self.path / "history" / f"{name}.jsonl", rows)
        if self.lost:
            _write(self.path / "lost" / "1.jsonl", self.lost)
        return self.path

    def note(self, process: str, at: float, f: str, e: str, **fields: Any) -> None:
        """Append a history line; an answer gets the number of the call before it."""
        lines = self.history.setdefault(process, [])
        number = len(lines) + (e == "invoke" or f not in ("prepare", "end", "fault"))
        lines.append({"t": MONO + at, "p": process, "n": number, "f": f, "e": e, **fields})

    def row(self, table: str, number: int) -> Row:
        """Return the row of a message in a table."""
        return next(row for row in self.tables[table] if row.get("half_id") == half(number))

    def record(self, number: int) -> Row:
        """Return the visible record of a message."""
        return next(row for row in self.tables["records"] if row["id"] == name(number))

    def drop_record(self, number: int) -> None:
        """Remove a message's record from Kafka, as if no reader had ever seen it."""
        for table in ("records", "uncommitted"):
            self.tables[table] = [r for r in self.tables[table] if r["id"] != name(number)]
        for line in self.lines("read"):
            line["recs"] = [rec for rec in line["recs"] if rec[2] != name(number)]

    def lines(self, f: str) -> list[Row]:
        """Return all history lines of one kind."""
        return [line for lines in self.history.values() for line in lines if line["f"] == f]

    def answers(self, f: str, number: int) -> Row:
        """Return the answered item of a message in the first call of its kind."""
        (items,) = (
            line["items"]
            for line in self.lines(f)
            if line["e"] == "ok" and line["about"] == number and not line.get("again")
        )
        found: Row = items[0]
        return found


def half(number: int) -> HalfId:
    """Return the half id of a message."""
    return half_id_of(1_000 + number, 0, SHARD)


def name(number: int) -> str:
    """Return the message id of a message."""
    return message_id_text(half(number), Nonce(7_000 + number))


def tx(number: int) -> str:
    """Return the transaction id of a message."""
    return f"client-0-1-0-{number}"


def _write(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
