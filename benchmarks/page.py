"""Writes the tables of docs/performance.md between two marks, as medians over the rounds."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from benchmarks.plan import Row

SERVERS: Final = ("api", "postgres", "checker", "kafka", "namesrv", "broker", "client")
PLACE: Final = re.compile(r"(<!-- bench -->\n).*?(<!-- end of bench -->)", re.DOTALL)
NONE: Final = "–"

Document = Mapping[str, Any]


def medians(rows: Iterable[Row]) -> list[Row]:
    """Return one row a subject and path, with the median of each figure over the rounds."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["subject"], row["path"]].append(row)
    return [
        {"subject": subject, "path": path, **_median(repeated)}
        for (subject, path), repeated in found.items()
    ]


def written(page: str, document: Document) -> str:
    """Return the page with its tables written anew; raises ValueError if the marks are missing."""
    tables = f"{conditions(document)}\n\n{paths(document)}\n\n{audit(document)}\n"
    page, count = PLACE.subn(lambda found: found[1] + tables + found[2], page)
    if count != 1:
        raise ValueError(f"the page has {count} places for the tables")
    return page


def conditions(document: Document) -> str:
    """Return the machine, the versions and the load of the run."""
    machine, load = document["machine"], document["load"]
    facts = {
        "run": f"{document['rounds']} rounds, {document['seconds'] / 60:.0f} minutes, values of "
        f"{document['value_bytes']} bytes, 1 000 keys",
        "machine": f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, "
        f"Linux {machine['kernel']}, a durable write takes {machine['fsync_ms']} ms",
        "load": f"{load[0]} before, {load[1]} after",
        "versions": ", ".join(
            f"{name} {version}" for name, version in document["versions"].items()
        ),
        "code": f"`{document['code_version']}`",
    }
    return _table(("", ""), list(facts.items()))


def paths(document: Document) -> str:
    """Return rates, latencies and costs of every path."""
    heads = ("", "path", "acknowledged/s", "through/s", "p50 ms", "p99 ms", "CPU µs a message",
             "of that", "WAL bytes")  # fmt: skip
    return _table(heads, [_path(row) for row in document["medians"]])


def audit(document: Document) -> str:
    """Return what the audit took."""
    found = document["audit"]
    row = [_number(found[name]) for name in ("records", "seconds", "cpu_us")]
    heads = ("audit of records", "seconds", "CPU µs a record", "verdict")
    return _table(heads, [(*row, found["verdict"])])


def _path(row: Row) -> tuple[str, ...]:
    rates = (_shown(row, f"{name}_per_second") for name in ("acked", "through"))
    waits = (f"{row[name]:.1f}" if name in row else NONE for name in ("p50_ms", "p99_ms"))
    used = row["cpu_us"]
    parts = ", ".join(f"{name} {_number(used[name])}" for name in SERVERS if name in used)
    total = _number(sum(used.values()))
    return (row["subject"], row["path"], *rates, *waits, total, parts, _shown(row, "wal_bytes"))


def _shown(row: Row, name: str) -> str:
    return _number(row[name]) if name in row else NONE


def _median(rows: Sequence[Row]) -> Row:
    """Return the medians of equal figures, also of nested ones."""
    figures: Row = {}
    for name, first in rows[0].items():
        if name not in ("path", "subject"):
            same = [row[name] for row in rows]
            figures[name] = _median(same) if isinstance(first, dict) else statistics.median(same)
    return figures


def _number(value: float) -> str:
    """Return a figure with a space between thousands; small ones with one decimal."""
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:.1f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
