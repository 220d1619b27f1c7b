"""A verdict shows its evidence, an unchecked invariant proves nothing, and slices add up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.controls.seeded_fault import seed_and_judge
from chaos.final_state.backlog import UNREAD
from chaos.judge import judge
from chaos.judge.invariants import INVARIANTS
from chaos.judge.verdict import Verdict, read, write
from chaos.run.totals import MixedVersions, add_up, total_of
from tests.fixtures_paths import PROJECT
from tests.unit.chaos.judge.fixtures_clean_run import clean_run
from tests.unit.chaos.judge.fixtures_lost_tail import after_a_loss
from tests.unit.chaos.judge.fixtures_run_folder import RunFolder, name


def judged(run: RunFolder) -> Verdict:
    """Write a run and judge it."""
    return judge(run.write())


def with_spark(path: Path, verdict: str) -> Verdict:
    """Return the verdict on a clean run with this verdict of Spark."""
    run = clean_run(path)
    run.facts["ended"]["spark"] = opinion(verdict, **({"LOST": 1} if verdict == "findings" else {}))
    return judged(run)


def opinion(verdict: str, *, committed: int = 8, **classes: int) -> dict[str, Any]:
    """Return what Spark says about a run, with the findings of each class."""
    checked = {"committed": committed, "records": committed}
    return {"verdict": verdict, "sentence": "so it is", "checked": checked, "classes": classes}


def test_a_run_without_its_end_its_facts_or_its_final_state_is_void(tmp_path: Path) -> None:
    assert judge(tmp_path).verdict == "VOID"
    cut_short = clean_run(tmp_path / "short")
    del cut_short.facts["ended"]
    assert judged(cut_short).verdict == "VOID"
    bare = clean_run(tmp_path / "bare").write()
    (bare / "leftovers" / "ops.jsonl").unlink()
    assert (judge(bare).verdict, judge(bare).reasons) == (
        "VOID",
        [f"leftovers are missing: {bare / 'leftovers' / 'ops.jsonl'}"],
    )


def test_an_unchecked_invariant_makes_a_run_void(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    for process in ("reader-committed", "reader-uncommitted"):
        del run.history[process]
    verdict = judged(run)
    assert verdict.verdict == "VOID"
    assert verdict.reasons[0].startswith("poll was not checked")


def test_an_error_of_the_harness_makes_a_run_void_and_hides_no_violation(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.facts["ended"]["errors"] = ["kill checker-9"]
    assert judged(run).verdict == "VOID"
    run.record(2)["sha"] = "another"
    assert judged(run).verdict == "VIOLATION"


@pytest.mark.parametrize(
    ("spark", "expected"),
    [("clean", "PASS"), ("findings", "VIOLATION"), ("inconclusive", "VOID"), ("none", "VOID")],
)
def test_the_verdict_of_spark_counts(tmp_path: Path, spark: str, expected: str) -> None:
    assert with_spark(tmp_path / "run", spark).verdict == expected


@pytest.mark.parametrize(
    ("lost", "beside", "expected"),
    [
        (True, (), "PASS"),
        (True, ("CLOCK_SKEW", "PARKED"), "PASS"),
        (True, ("MANIFEST_BREAK",), "VIOLATION"),
        (False, (), "VIOLATION"),
    ],
    ids=["lost tail", "ended again and parked", "a broken manifest", "no lost tail"],
)
def test_only_after_a_lost_tail_may_spark_find_what_postgresql_lost(
    tmp_path: Path, lost: bool, beside: tuple[str, ...], expected: str
) -> None:
    run = after_a_loss(tmp_path / "run") if lost else clean_run(tmp_path / "run")
    classes = dict.fromkeys(("PG_REGRESSION", *beside), 1)
    run.facts["ended"]["spark"] = opinion("findings", **classes)
    assert judged(run).verdict == expected


def test_spark_must_name_every_orphan_of_a_lost_tail(tmp_path: Path) -> None:
    for number, said in enumerate((opinion("clean"), opinion("findings", PG_REGRESSION=2))):
        run = after_a_loss(tmp_path / str(number))
        run.facts["ended"]["spark"] = said
        assert judged(run).verdict == "VIOLATION"


def test_spark_may_not_see_an_orphan_any_more_once_its_leaf_has_retired(tmp_path: Path) -> None:
    run = after_a_loss(tmp_path / "run")
    run.tables["retired"].append({"leaf": 99})
    run.facts["ended"]["spark"] = opinion("clean")
    assert judged(run).verdict == "PASS"


def test_an_audit_that_read_less_than_postgresql_has_proves_nothing(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.facts["ended"]["spark"] = opinion("clean", committed=7)
    verdict = judged(run)
    assert verdict.verdict == "VOID"
    assert verdict.reasons == ["Spark checked 7 of 8 committed messages"]


def test_the_first_violation_comes_with_the_history_about_it(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.record(2)["sha"] = "another"
    verdict = judged(run)
    assert verdict.invariants["I7"]["first"]["id"] == name(2)
    assert verdict.context
    assert all(name(2) in line for line in verdict.context)
    assert "I7" in verdict.text()


def test_a_state_that_the_profile_must_reach_and_did_not_makes_a_run_void(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.facts["must_reach"] = ["entry published", "entry held", "fault frame_hold"]
    verdict = judged(run)
    assert verdict.verdict == "VOID"
    assert verdict.reasons == ["never reached: entry held", "never reached: fault frame_hold"]


def test_a_profile_whose_programs_were_never_killed_at_work_proves_nothing(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.facts["must_reach"] = ["checker killed", "api killed"]
    run.facts["ended"]["ends"] = {"checker:kill": 3, "api:idle": 5, "api:stopped": 2}
    verdict = judged(run)
    assert (verdict.verdict, verdict.reasons) == ("VOID", ["never reached: api killed"])
    assert verdict.killed == 3


@pytest.mark.parametrize("end", ["api:ended with 0", "client:ended with 1"])
def test_a_program_that_ends_by_itself_makes_a_run_void(tmp_path: Path, end: str) -> None:
    run = clean_run(tmp_path / "run")
    run.facts["ended"]["ends"][end] = 2
    verdict = judged(run)
    assert verdict.verdict == "VOID"
    assert verdict.reasons == [f"{end.replace(':', ' ')} 2 times by itself"]
    assert verdict.killed == 1


def test_a_backlog_that_nobody_could_read_proves_nothing(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.facts["ended"]["left"] = UNREAD._asdict()
    verdict = judged(run)
    assert verdict.verdict == "VOID"
    assert "nobody could read the backlog at the end" in verdict.reasons


def test_a_fault_that_met_nothing_does_not_count(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    for facts in ({"met": False}, {"met": True}, {"skipped": "busy"}, {}):
        run.note("harness", 11.0, "fault", "invoke", kind="frame_hold", target="kafka", args={})
        run.note("harness", 12.0, "fault", "ok", kind="frame_hold", target="kafka", facts=facts)
    assert judged(run).faults == {"frame_hold": 1}


def test_the_page_explains_each_invariant_in_the_words_of_the_verdict() -> None:
    rows = (PROJECT / "docs" / "chaos.md").read_text("utf-8").splitlines()
    explained = [row.split(" | ")[:2] for row in rows if row.count(" | ") == 2]
    assert [[f"| {name}", words] for name, words in INVARIANTS.items()] == [
        row for row in explained if row[0].removeprefix("| ") in INVARIANTS
    ]


def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run").write()
    with (run / "history" / "client-0.jsonl").open("a") as file:
        file.write('{"t":1.0,"p":"client-0","n":9')
    assert judge(run).verdict == "PASS"


def test_a_verdict_is_read_back_as_it_was_and_shows_quantiles(tmp_path: Path) -> None:
    verdict = judged(clean_run(tmp_path / "run"))
    write(tmp_path / "run", verdict)
    path = tmp_path / "run" / "verdict.json"
    assert read(path) == verdict
    back = json.loads(path.read_text())["back"]["kill"]
    assert back == {"samples": 1, "p50": 0.5, "p95": 0.5, "longest": 0.5}


def test_slices_of_one_code_add_up_and_merge_their_samples(tmp_path: Path) -> None:
    for number, samples in enumerate(([1.0, 2.0], [3.0]), 1):
        verdict = with_spark(tmp_path / f"slice-{number}", "clean")
        recoveries = {"kill": samples}
        verdict = replace(verdict, seed=number, recoveries=recoveries)
        write(tmp_path / f"slice-{number}", verdict)
    totals = add_up(tmp_path)
    assert (totals.verdict, totals.killed, totals.messages) == ("PASS", 2, 20)
    assert totals.recoveries["kill"] == {"samples": 3, "p50": 2.0, "p95": 2.9, "longest": 3.0}
    assert totals.invariants["I1"]["checked"] == 16
    assert totals.spark == {"clean": 2}
    assert "Short of the profile's target: 2 of 10000 kills, 20 of 2000000" in totals.text()
    assert json.loads(totals.json())["seeds"] == [1, 2]


def test_a_page_names_the_load_and_repeats_a_smaller_run_as_it_was(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.facts["ended"]["load"] = [3.96, 17.2, 9.0]
    run.facts["machine"] = {"cores": 2}
    loaded = replace(judged(run), profile="frames", seed=5, length=90.0, pace=0.5)
    calm = replace(loaded, load=[0.2, 1.0, 1.0])
    page = total_of([loaded, calm]).text()
    assert "Load 0 to 17 on 2 cores." in page
    assert "`outbox chaos run --profile frames --seed 5 --seconds 90 --pace 0.5`" in page
    unknown = total_of([replace(loaded, load=[], pace=1.0)]).text()
    assert "Load" not in unknown
    assert "--pace" not in unknown


def test_a_page_says_what_was_not_judged_and_what_spark_found(tmp_path: Path) -> None:
    sound = judged(clean_run(tmp_path / "run"))
    found = {"verdict": "findings", "classes": {"PG_REGRESSION": 4}}
    page = total_of([replace(sound, excused=7, spark=found), sound]).text()
    assert "Not judged: 7 answers about what PostgreSQL lost later." in page
    assert "by slices: findings in 1." in page
    assert "after a lost tail: PG_REGRESSION 4." in page
    calm = total_of([sound]).text()
    assert not [line for line in calm.splitlines() if line.startswith(("Not judged", "Found"))]


@pytest.mark.parametrize("word", ["VIOLATION", "VOID"])
def test_a_slice_that_did_not_pass_is_shown_in_the_sum(tmp_path: Path, word: str) -> None:
    sound = judged(clean_run(tmp_path / "run"))
    assert total_of([sound, replace(sound, verdict=word)]).verdict == word


@pytest.mark.parametrize("other", [{"code_version": "another"}, {"profile": "frames"}])
def test_different_code_or_profiles_are_not_added_up(tmp_path: Path, other: Any) -> None:
    sound = judged(clean_run(tmp_path / "run"))
    with pytest.raises(MixedVersions):
        total_of([sound, replace(sound, **other)])


def test_a_folder_without_verdicts_has_no_sum(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        add_up(tmp_path)


def test_every_seeded_fault_is_caught_by_its_name(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run").write()
    results = seed_and_judge(run, tmp_path / "planted")
    assert len(results) == 5
    assert [(each.name, each.how) for each in results if not each.caught] == []
