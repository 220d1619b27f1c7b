"""The judge passes a clean run, and reports what is wrong by its invariant: a control a rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from chaos.judge import judge
from chaos.judge.calls import read_calls
from chaos.judge.findings import INVARIANTS
from tests.unit.chaos.fixtures_clean_run import PLACE, Run, clean_run

Break = Callable[[Run], object]


def add_record(run: Run, name: str, **other: object) -> None:
    record = {**run.left.records[0], "id": name, "tx": name, "offset": 9, **other}
    run.left.records.append(record)
    run.left.by_id.setdefault(name, []).append(record)


def double(run: Run) -> None:
    add_record(run, "two", sha="sha-two", content_digest="digest-two")


def publish_a_rollback(run: Run) -> None:
    add_record(run, "three", sha="sha-three", content_digest="digest-three")


def send_a_rollback_in_an_aborted_transaction(run: Run) -> None:
    run.left.uncommitted.append({**run.left.uncommitted[0], "id": "three"})


def lose(run: Run) -> None:
    run.left.records.pop(1)
    del run.left.by_id["two"]


def contradict(run: Run) -> None:
    run.calls.by_message["one"].decisions.add("ROLLBACK")


def forget_a_half(run: Run) -> None:
    for name in ("three", "four"):
        del run.left.halves[name], run.left.ops[name]


def forget_a_decision(run: Run) -> None:
    run.calls.by_message["three"].decisions.add("COMMIT")


def store_a_transaction_twice(run: Run) -> None:
    run.left.halves["two"]["tx"] = run.left.records[1]["tx"] = "one"
    run.calls.prepared["two"] = run.calls.prepared["two"]._replace(tx="one")


def invert(run: Run) -> None:
    run.left.records[0]["offset"], run.left.records[1]["offset"] = 1, 0


def invert_the_log(run: Run) -> None:
    """What was acknowledged first has the higher offset, though the log agrees with Kafka."""
    run.left.committed.update(one=(12, 0))
    invert(run)


def alter(run: Run) -> None:
    run.left.records[0]["sha"] = "another"


def leave_a_transaction_open(run: Run) -> None:
    run.left.watermarks[PLACE]["stable"] = 2


def leave_a_backlog(run: Run) -> None:
    run.ended["left"]["unpublished"] = 1


def leave_undecided(run: Run) -> None:
    del run.left.ops["three"], run.left.ops["four"]


def decide_a_leader_alone(run: Run) -> None:
    del run.left.ops["four"]


def halt(run: Run) -> None:
    run.left.halts["relay:1"] = "replay_stuck"


def keep_what_was_refused(run: Run) -> None:
    run.calls.refused.add("three")


def decide_what_was_never_sent(run: Run) -> None:
    run.calls.by_message["one"].sent.clear()


def decide_against_the_endpoint(run: Run) -> None:
    run.calls.by_message["three"].answered.remove("ROLLBACK")


BROKEN: list[tuple[Break, set[str]]] = [
    (double, {"I1"}),
    (publish_a_rollback, {"I2"}),
    (send_a_rollback_in_an_aborted_transaction, {"I2"}),
    (lose, {"I3"}),
    (contradict, {"I4"}),
    (forget_a_half, {"I5"}),
    (forget_a_decision, {"I5"}),
    (store_a_transaction_twice, {"I5"}),
    (invert, {"I6"}),
    (invert_the_log, {"I6"}),
    (alter, {"I7"}),
    (leave_a_transaction_open, {"I16"}),
    (leave_a_backlog, {"I17"}),
    (leave_undecided, {"I17"}),
    (decide_a_leader_alone, {"I17", "I19"}),
    (halt, {"I17"}),
    (keep_what_was_refused, {"I18"}),
    (decide_what_was_never_sent, {"I18"}),
    (decide_against_the_endpoint, {"I18"}),
]


def test_a_clean_run_has_no_violation_and_checks_everything() -> None:
    assert clean_run().violated() == set()
    assert set().union(*(names for _, names in BROKEN)) == set(INVARIANTS)


@pytest.mark.parametrize(
    ("break_it", "names"), BROKEN, ids=lambda each: getattr(each, "__name__", "")
)
def test_each_violation_is_reported_by_its_invariant(break_it: Break, names: set[str]) -> None:
    run = clean_run()
    break_it(run)
    assert run.violated() == names


def test_what_a_lost_tail_explains_is_no_violation_and_its_orphan_must_be_listed() -> None:
    run = clean_run()
    forget_a_half(run)
    del run.left.halves["two"], run.left.ops["two"], run.left.committed["two"]
    run.left.lost.halves |= {"two", "three", "four"}
    run.left.lost.ops |= {"two": "COMMIT", "three": "ROLLBACK"}
    run.left.already["two"] = {"id": "two"}
    assert run.violated() == set()
    run.left.already.clear()
    assert run.violated() == {"I2"}


def test_an_orphan_without_a_lost_tail_is_a_violation() -> None:
    run = clean_run()
    run.left.already["two"] = {"id": "two"}
    assert run.violated() == {"I2"}


def test_a_held_record_is_not_missing() -> None:
    run = clean_run()
    lose(run)
    run.left.held["two"] = {"id": "two", "released": False}
    assert run.violated() == set()


def test_a_run_that_did_not_finish_is_void(tmp_path: Path) -> None:
    assert judge(tmp_path).verdict == "VOID"
    (tmp_path / "run.json").write_text('{"profile": "kill"}')
    assert judge(tmp_path).verdict == "VOID"


def test_a_call_without_an_answer_proves_nothing(tmp_path: Path) -> None:
    item = {"tx": "t", "topic": "a", "key": None, "sha": "s", "headers": "h"}
    lines = [
        {"f": "prepare", "e": "invoke", "n": 1, "t": 1.0, "items": [item]},
        {"f": "prepare", "e": "fail", "n": 1, "t": 1.1},
        {"f": "prepare", "e": "invoke", "n": 2, "t": 2.0, "items": [item]},
        {"f": "end", "e": "invoke", "n": 3, "t": 3.0, "items": [{"id": "m", "d": "COMMIT"}]},
        {"f": "end", "e": "info", "n": 3, "t": 3.1},
    ]
    (tmp_path / "history").mkdir()
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "history" / "client-0.jsonl").write_text(f'{text}\n{{"f": "prep')
    calls = read_calls(tmp_path)
    assert (calls.refused, calls.doubtful) == (set(), {"t"})
    message = calls.by_message["m"]
    assert (message.commit_sent, message.committed_by, message.decisions) == (3.0, inf, set())
