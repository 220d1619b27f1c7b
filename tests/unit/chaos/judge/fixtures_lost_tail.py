"""A run in which PostgreSQL lost its newest commits."""

from __future__ import annotations

from pathlib import Path

from tests.unit.chaos.judge.fixtures_clean_run import clean_run
from tests.unit.chaos.judge.fixtures_run_folder import RunFolder, half, name

ORPHAN = 5
FORGOTTEN = 6


def after_a_loss(path: Path) -> RunFolder:
    """Return a run in which PostgreSQL lost a published message and a rolled back one."""
    run = clean_run(path)
    for number, op in ((ORPHAN, "COMMIT"), (FORGOTTEN, "ROLLBACK")):
        run.tables["halves"].remove(run.row("halves", number))
        run.tables["ops"].remove(run.row("ops", number))
        run.lost.append({"half": half(number), "id": name(number), "half_lost": True, "op": op})
    log = run.tables["commit_log"]
    run.tables["commit_log"] = [row for row in log if half(ORPHAN) not in row["half_ids"]]
    run.tables["already"].append({"id": name(ORPHAN), "half_id": half(ORPHAN)})
    return run
