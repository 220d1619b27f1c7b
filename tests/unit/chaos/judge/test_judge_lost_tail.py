"""A lost tail of PostgreSQL excuses exactly the losses that it lists."""

from __future__ import annotations

from pathlib import Path

from chaos.judge import judge
from chaos.judge.verdict import Verdict
from tests.unit.chaos.judge.fixtures_clean_run import clean_run
from tests.unit.chaos.judge.fixtures_run_folder import RunFolder, half, name

ORPHAN = 5
FORGOTTEN = 6


def violated(verdict: Verdict) -> set[str]:
    """Return the invariants that a verdict finds violated."""
    return {each for each, found in verdict.invariants.items() if found["violations"]}


def after_a_loss(path: Path) -> RunFolder:
    """Return a run in which PostgreSQL lost a published message and a rolled back one."""
    run = clean_run(path)
    for number, op in ((ORPHAN, "COMMIT"), (FORGOTTEN, "ROLLBACK")):
        run.tables["halves"].remove(run.row("halves", number))
        run.tables["ops"].remove(run.row("ops", number))
        run.lost.append({"half": half(number), "id": name(number), "op": op})
    log = run.tables["commit_log"]
    run.tables["commit_log"] = [row for row in log if half(ORPHAN) not in row["half_ids"]]
    run.tables["already"].append({"id": name(ORPHAN), "half_id": half(ORPHAN)})
    return run


def test_a_listed_loss_is_excused_and_counted(tmp_path: Path) -> None:
    verdict = judge(after_a_loss(tmp_path / "run").write())
    assert (verdict.verdict, violated(verdict)) == ("PASS", set())
    assert verdict.excused == 4


def test_an_unlisted_loss_is_found(tmp_path: Path) -> None:
    run = after_a_loss(tmp_path / "run")
    run.lost = [row for row in run.lost if row["id"] != name(FORGOTTEN)]
    assert violated(judge(run.write())) == {"I5"}


def test_a_published_message_of_a_lost_tail_must_be_stored_as_published(tmp_path: Path) -> None:
    run = after_a_loss(tmp_path / "run")
    run.tables["already"].clear()
    assert violated(judge(run.write())) == {"I2"}


def test_a_visible_record_whose_commit_was_lost_must_get_its_commit_back(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.lost.append({"half": half(ORPHAN), "id": name(ORPHAN), "op": "COMMIT"})
    assert violated(judge(run.write())) == set()

    run = clean_run(tmp_path / "again")
    run.lost.append({"half": half(ORPHAN), "id": name(ORPHAN), "op": "COMMIT"})
    run.row("ops", ORPHAN)["decision"] = 2
    for row in list(run.tables["commit_log"]):
        if half(ORPHAN) in row["half_ids"]:
            run.tables["commit_log"].remove(row)
    assert "I2" in violated(judge(run.write()))
