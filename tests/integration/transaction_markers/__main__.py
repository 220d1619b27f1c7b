"""Kill leaders between flush and commit: ``python -m tests.integration.transaction_markers``.

On each fetched release, several kills on servers of its own. Writes the counts per release and case
to ``docs/evidence/markers-counts.json`` and to the table of ``docs/evidence/markers.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any

from devservers.artifacts import KAFKA_RELEASES, kafka_version
from tests.fixtures_paths import PROJECT
from tests.integration.transaction_markers.fixtures_mortal_brokers import mortal_brokers
from tests.integration.transaction_markers.fixtures_skipped_marker import (
    RECORDS,
    Transaction,
    one_kill,
)

EVIDENCE = PROJECT / "docs" / "evidence"
COUNTS = EVIDENCE / "markers-counts.json"
BEGIN, END = "<!-- written by python -m tests.integration.transaction_markers -->", "<!-- end -->"
HEAD = (
    "| Kafka | replicas | ended while leaderless | next transaction of the same producer "
    "| tries | said OK | stayed open | records visible before, after |",
    "|---|---|---|---|---|---|---|---|",
)


def main() -> int:
    """Run the kills; print and write what was seen, beside what earlier runs saw of others."""
    arguments = _parser().parse_args()
    releases = arguments.kafka or [each for each in KAFKA_RELEASES if kafka_version(each)]
    counted = json.loads(COUNTS.read_text()) if COUNTS.exists() else []
    for release, replicas in product(releases, arguments.replicas):
        rows = list(_rows(release, replicas, arguments.kills))
        others = [each for each in counted if _run(each) != (release, replicas)]
        counted = sorted([*others, *rows], key=_run)
    COUNTS.write_text(json.dumps(counted, indent=1) + "\n")
    lines = [*HEAD, *map(_line, counted)]
    _write_table(EVIDENCE / "markers.md", lines)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _run(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["kafka"], row["replicas"]


def _rows(release: str, replicas: int, kills: int) -> Iterator[dict[str, Any]]:
    """Yield the counts of each case of one release; all replicas die at once."""
    with (
        tempfile.TemporaryDirectory(prefix="markers-") as folder,
        mortal_brokers(release, Path(folder), replicas) as brokers,
    ):
        waits = [not number % 2 for number in range(kills)]
        found = [each for wait in waits for each in one_kill(brokers, await_leaderless=wait)]
    found.sort(key=_case)
    for (ending, then), group in groupby(found, key=_case):
        yield {
            "kafka": release,
            "replicas": replicas,
            "ending": ending,
            "then": then,
            **_counts(list(group)),
        }


def _case(each: Transaction) -> tuple[str, str]:
    return each.ending.value, each.then.value


def _counts(group: Sequence[Transaction]) -> dict[str, Any]:
    return {
        "tries": len(group),
        "said_ok": sum(each.answer == "OK" for each in group),
        "stayed_open": sum(each.hanging for each in group),
        "records": RECORDS * len(group),
        "visible_before": sum(each.visible_before for each in group),
        "visible_after": sum(each.visible_after for each in group),
    }


def _line(row: Mapping[str, Any]) -> str:
    visible = f"{row['visible_before']}, {row['visible_after']} of {row['records']}"
    cells = (
        row["kafka"],
        row["replicas"],
        row["ending"],
        row["then"],
        row["tries"],
        row["said_ok"],
    )
    return "| " + " | ".join(str(each) for each in (*cells, row["stayed_open"], visible)) + " |"


def _write_table(page: Path, lines: Sequence[str]) -> None:
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text("\n".join([before + BEGIN, "", *lines, "", END + after]), "utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="transaction_markers", description=__doc__)
    parser.add_argument("--kills", type=int, default=2, help="kills of a leader per release")
    parser.add_argument("--replicas", type=int, nargs="*", default=[1, 3], help="all die at once")
    parser.add_argument("--kafka", nargs="*", default=[], help="releases; default: all fetched")
    return parser


if __name__ == "__main__":
    sys.exit(main())
