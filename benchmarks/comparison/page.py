"""Writes the tables of docs/performance.md, between markers, from the kept document alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.comparison.plan import CLIENTS, PATHS, RATES, Row
from benchmarks.comparison.results import OURS, RELEASE, cost_ratio

SERVERS: Final = ("api", "postgres", "checker", "kafka", "client")
BOTH: Final = (OURS, RELEASE)
REFERENCE: Final = "its client x 64"
_PLACE: Final = r"(<!-- bench: {} -->\n).*?(<!-- end of bench -->)"

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What one path is to reach; None where nothing is asked."""

    path: str
    before: str
    """What the last release reached on the machine of the goals."""
    before_cpu_us: float | None = None
    before_p50_ms: float | None = None
    before_p99_ms: float | None = None
    cpu_us: float | None = None
    per_second: float | None = None
    to_rocketmq: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


GOALS: Final = (
    Goal(path="batch 500 x 4", before="108 µs, 15 100/s, 1.2-1.5 ×", before_cpu_us=108,
         cpu_us=55, per_second=30_000, to_rocketmq=2.3),
    Goal(path="single x 64", before="620 µs, 2 700-3 170/s, 0.24 ×", before_cpu_us=620,
         cpu_us=330, per_second=6_000, to_rocketmq=0.45),
    Goal(path="client threads x 64", before="126-174/s",
         per_second=13_000, to_rocketmq=1.0),
    Goal(path="client asyncio x 256", before="–", per_second=13_000, to_rocketmq=1.0),
    Goal(path="single x 1", before="4 300 µs, 298/s", before_cpu_us=4_300,
         cpu_us=2_000, per_second=550),
    *(Goal(path=path, before="p50 76-95 ms, p99 160-307 ms", before_p50_ms=p50, before_p99_ms=p99,
           p50_ms=12, p99_ms=50)
      for path, p50, p99 in zip(RATES, (76, 95), (160, 307), strict=True)),
)  # fmt: skip


def written(page: str, document: Document) -> str:
    """Return the page with its tables written anew; raises ValueError if a marker is missing."""
    for name, text in tables(document).items():
        page, count = re.subn(
            _PLACE.format(name), rf"\g<1>{_escaped(text)}\g<2>", page, flags=re.DOTALL
        )
        if count != 1:
            raise ValueError(f"the page has {count} places for the table `{name}`")
    return page


def tables(document: Document) -> dict[str, str]:
    """Return each table by the name of its place."""
    found = {
        "conditions": conditions(document),
        "goals": goals(document),
        "parts of before": parts_of_before(document),
        "costs": costs(document),
        "rates": rates(document),
        "latency": latencies(document),
        "parts": parts(document),
    }
    return {name: text + "\n" for name, text in found.items()}


def conditions(document: Document) -> str:
    """Return the machine, the versions and the load of the run."""
    machine, versions = document["machine"], document["versions"]
    facts = {
        "command": f"`{document['command']}`, rounds: {document['rounds']}, "
        f"{document['seconds'] / 60:.0f} minutes",
        "machine": f"{machine['cores']} cores ({machine['processor']}), "
        f"{machine['memory_gb']} GB, Linux {machine['kernel']}; one durable write of 8 KiB "
        f"takes {machine['fsync_ms']} ms",
        "load": f"1-minute load {document['load'][0]} before, {document['load'][1]} after; "
        f"of the cores, other processes used {document['others_cpu_percent']} %, other machines "
        f"{document.get('stolen_cpu_percent', '?')} %",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "code": f"`{document['code_version']}` beside the commit `{document['release'][:12]}`",
        "settings": ", ".join(f"{name} {value}" for name, value in document["settings"].items()),
    }
    return _table(("", ""), list(facts.items()))


def goals(document: Document) -> str:
    """Return the table of goals and measured values."""
    ours = document["medians"][OURS]
    rows = [_goal_row(goal, ours[goal.path], document) for goal in GOALS if goal.path in ours]
    return _table(("path", "before", "goal", "measured", "met"), rows)


def _goal_row(goal: Goal, row: Row, document: Document) -> tuple[str, ...]:
    asked, found, missed = [], [], []
    for limit, value, form, at_most in _judged(goal, row, document):
        if limit is None or value is None:
            continue
        asked.append(form(limit, "≤ " if at_most else "≥ "))
        found.append(form(value, ""))
        if value > limit if at_most else value < limit:
            missed.append(f"{form(value, '')} is {value / limit:.2f} × the goal")
    verdict = "no: " + "; ".join(missed) if missed else "yes"
    return goal.path, goal.before, ", ".join(asked), ", ".join(found), verdict


def parts_of_before(document: Document) -> str:
    """Return goals and measured values as parts of what the last release needs: any machine."""
    release = document["medians"].get(RELEASE, {})
    rows = [
        (goal.path, what, f"{limit / before:.2f}", f"{found:.2f}", _verdict(found * before, limit))
        for goal in GOALS
        if goal.path in release
        for what, limit, before, found in _beside_release(goal, document)
        if limit is not None and before is not None and found is not None
    ]
    return _table(("path", "of the last release", "goal", "measured", "met"), rows)


def _beside_release(goal: Goal, document: Document) -> tuple[tuple[Any, ...], ...]:
    """Return what is compared, the goal, the value before, and the measured ratio."""
    ours, before = (document["medians"][subject][goal.path] for subject in BOTH)
    p50, p99 = (
        ours[name] / before[name] if name in before else None for name in ("p50_ms", "p99_ms")
    )
    ratio = cost_ratio(document["rows"], goal.path, OURS, RELEASE)
    return (
        ("CPU time", goal.cpu_us, goal.before_cpu_us, ratio),
        ("p50", goal.p50_ms, goal.before_p50_ms, p50),
        ("p99", goal.p99_ms, goal.before_p99_ms, p99),
    )


def _verdict(value: float, limit: float) -> str:
    return "yes" if value <= limit else f"no: {value / limit:.2f} × the goal"


def _judged(goal: Goal, row: Row, document: Document) -> tuple[tuple[Any, ...], ...]:
    """Return limit, value, form, and whether less is better."""
    rival = _rocketmq(document).get(REFERENCE)
    through = row.get("through_per_second")
    ratio = through / rival["through_per_second"] if rival and through else None
    return (
        (goal.cpu_us, sum(row["cpu_us"].values()), lambda n, sign: f"{sign}{_number(n)} µs", True),
        (goal.per_second, through, lambda n, sign: f"{sign}{_number(n)}/s", False),
        (goal.to_rocketmq, ratio, lambda n, sign: f"{sign}{n:.2f} × RocketMQ", False),
        (goal.p50_ms, row.get("p50_ms"), lambda n, sign: f"p50 {sign}{n:.0f} ms", True),
        (goal.p99_ms, row.get("p99_ms"), lambda n, sign: f"p99 {sign}{n:.0f} ms", True),
    )


def costs(document: Document) -> str:
    """Return CPU microseconds a message by process, WAL and transactions, beside the release."""
    rows = []
    for path in reversed(PATHS):
        rows += [_cost_row(path, subject, row) for subject, row in _both(document, path)]
        ratio = cost_ratio(document["rows"], path, OURS, RELEASE)
        if ratio is not None:
            rows.append((path, "ratio, median of pairs", *[""] * 5, f"{ratio:.2f}", "", ""))
    for path in CLIENTS:
        rows += [_cost_row(path, subject, row) for subject, row in _both(document, path)]
    heads = ("path", "", "API", "PostgreSQL", "checker", "Kafka", "client", "all")
    return _table((*heads, "WAL bytes", "Kafka transactions a second"), rows)


def _cost_row(path: str, subject: str, row: Row) -> tuple[str, ...]:
    used = [_number(row["cpu_us"][name]) for name in SERVERS]
    total = _number(sum(row["cpu_us"].values()))
    return (path, subject, *used, total, _number(row["wal_bytes"]),
            _number(row["transactions_per_second"]))  # fmt: skip


def rates(document: Document) -> str:
    """Return acknowledged and published messages a second of all subjects."""
    rows = [
        _rate_row(subject, path, row)
        for subject, paths in document["medians"].items()
        for path, row in paths.items()
        if "through_per_second" in row
    ]
    heads = ("", "path", "acknowledged/s", "through/s", "CPU µs a message", "p50 ms", "p99 ms")
    return _table(heads, rows)


def _rate_row(subject: str, path: str, row: Row) -> tuple[str, ...]:
    waits = [f"{row[name]:.1f}" if name in row else "–" for name in ("p50_ms", "p99_ms")]
    used = _number(sum(row["cpu_us"].values()))
    return (subject, path, _number(row["acked_per_second"]), _number(row["through_per_second"]),
            used, *waits)  # fmt: skip


def latencies(document: Document) -> str:
    """Return the time from the answer to an END to a `read_committed` consumer."""
    rows = [
        _latency_row(path, subject, row) for path in RATES for subject, row in _both(document, path)
    ]
    heads = ("path", "", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms")
    return _table((*heads, "Kafka transactions a second", "CPU µs a message, servers"), rows)


def _latency_row(path: str, subject: str, row: Row) -> tuple[str, ...]:
    waits = [f"{row[name]:.1f}" for name in ("p50_ms", "p90_ms", "p99_ms", "p99.9_ms")]
    used = _number(sum(row["cpu_us"].values()))
    return (path, subject, *waits, _number(row["transactions_per_second"]), used)


def parts(document: Document) -> str:
    """Return what the parts reach alone."""
    rows = [
        (path, _number(row["acked_per_second"]),
         ", ".join(f"{name} {_number(each)}" for name, each in row["cpu_us"].items()))
        for path, row in document["medians"].get("alone", {}).items()
    ]  # fmt: skip
    return _table(("alone", "a second", "CPU µs a message"), rows)


def _both(document: Document, path: str) -> list[tuple[str, Row]]:
    """Return what this tree and the last release have for a path."""
    found = ((subject, document["medians"].get(subject, {}).get(path)) for subject in BOTH)
    return [(subject, row) for subject, row in found if row]


def _rocketmq(document: Document) -> dict[str, Row]:
    found: dict[str, Row] = document["medians"].get(_rocketmq_name(document), {})
    return found


def _rocketmq_name(document: Document) -> str:
    return next((name for name in document["medians"] if name.startswith("RocketMQ")), "")


def _number(value: float) -> str:
    """Return a figure with a space between thousands; small ones with one decimal."""
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:.1f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\")
