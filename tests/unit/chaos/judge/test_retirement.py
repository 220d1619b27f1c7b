"""Retention may remove finished messages only; Kafka and the history judge what it removed."""

from __future__ import annotations

from pathlib import Path

from chaos.judge import judge
from outbox.messages.message_id import leaf_in
from tests.unit.chaos.judge.fixtures_broken_run import violated
from tests.unit.chaos.judge.fixtures_clean_run import ROLLBACK, clean_run
from tests.unit.chaos.judge.fixtures_run_folder import RunFolder, half, name

COMMITTED = 3
ROLLED_BACK = 6
CHECKED = 8
"""A half that a check rolled back."""
CHECKED_COMMIT = 7
"""A half that a check committed."""


def retire(run: RunFolder, *numbers: int) -> None:
    """Remove the rows of messages with their leaf."""
    run.tables["retired"].append({"leaf": leaf_in(half(0))})
    gone = {half(number) for number in numbers}
    for table in ("halves", "ops", "attempts"):
        run.tables[table] = [row for row in run.tables[table] if row["half_id"] not in gone]
    log = run.tables["commit_log"]
    run.tables["commit_log"] = [row for row in log if not gone.intersection(row["half_ids"])]


def forget_end(run: RunFolder, number: int) -> None:
    """Nobody ever ended a message."""
    for process, lines in run.history.items():
        run.history[process] = [
            line for line in lines if line.get("about") != number or line["f"] == "prepare"
        ]


def test_finished_messages_may_go_with_their_leaf(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    retire(run, COMMITTED, ROLLED_BACK, CHECKED)
    verdict = judge(run.write())
    assert violated(verdict) == set()
    assert verdict.invariants["I15"]["checked"] == 3
    assert verdict.reached["message retired with its leaf"] == 3
    assert verdict.reached["leaf retired"] == 1


def test_a_message_whose_lost_commit_came_back_may_go_with_its_leaf(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    lost = {"half": half(COMMITTED), "id": name(COMMITTED), "half_lost": False, "op": "COMMIT"}
    run.lost.append(lost)
    retire(run, COMMITTED)
    assert violated(judge(run.write())) == set()


def test_a_commit_log_that_outlives_its_halves_names_them_by_the_manifests(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    log = run.tables["commit_log"]
    retire(run, COMMITTED)
    run.tables["commit_log"] = log
    assert violated(judge(run.write())) == set()


def test_a_missing_half_of_a_leaf_that_stays_is_lost(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    retire(run, ROLLED_BACK)
    run.tables["retired"][0]["leaf"] += 1
    assert violated(judge(run.write())) == {"I5"}


def test_an_undecided_half_must_not_go_with_its_leaf(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    retire(run, ROLLED_BACK)
    forget_end(run, ROLLED_BACK)
    assert violated(judge(run.write())) == {"I15"}


def test_an_unpublished_commit_must_not_go_with_its_leaf(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    retire(run, COMMITTED)
    run.drop_record(COMMITTED)
    assert violated(judge(run.write())) == {"I3", "I8", "I15"}


def test_a_retired_message_without_a_commit_must_not_be_in_kafka(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    retire(run, COMMITTED)
    for line in run.lines("end"):
        if line["about"] == COMMITTED:
            line["items"][0].update({"d": ROLLBACK} if line["e"] == "invoke" else {})
            line["items"][0].update({"state": "ROLLED_BACK"} if line["e"] == "ok" else {})
    assert violated(judge(run.write())) == {"I2"}


def test_a_commit_that_only_a_check_gave_is_known_to_be_meant(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    retire(run, CHECKED_COMMIT)
    assert violated(judge(run.write())) == set()
    for line in run.lines("check"):
        line["items"] = [each for each in line["items"] if each["id"] != name(CHECKED_COMMIT)]
    assert violated(judge(run.write())) == {"I2"}
