"""A lost tail of PostgreSQL excuses exactly the losses that it lists."""

from __future__ import annotations

from pathlib import Path

from chaos.judge import judge
from tests.unit.chaos.judge.fixtures_broken_run import violated
from tests.unit.chaos.judge.fixtures_clean_run import clean_run, resealed
from tests.unit.chaos.judge.fixtures_lost_tail import FORGOTTEN, ORPHAN, after_a_loss
from tests.unit.chaos.judge.fixtures_run_folder import half, name

LOST_COMMIT = {"half": half(ORPHAN), "id": name(ORPHAN), "half_lost": False, "op": "COMMIT"}


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
    run.lost.append(LOST_COMMIT)
    assert violated(judge(run.write())) == set()

    run = clean_run(tmp_path / "again")
    run.lost.append(LOST_COMMIT)
    run.row("ops", ORPHAN)["decision"] = 2
    for row in list(run.tables["commit_log"]):
        if half(ORPHAN) in row["half_ids"]:
            run.tables["commit_log"].remove(row)
    assert "I2" in violated(judge(run.write()))


def test_after_a_lost_tail_a_batch_may_begin_again_but_not_leave_a_gap(tmp_path: Path) -> None:
    for number, (after, expected) in enumerate((([2_001, 1], set[str]()), ([2_003, 1], {"I9"}))):
        run = after_a_loss(tmp_path / str(number))
        run.tables["manifests"][1]["after"] = after
        run.tables["manifests"][1]["kind"] = "REPAIR"
        resealed(run)
        assert violated(judge(run.write())) == expected
