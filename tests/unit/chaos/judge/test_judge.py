"""The judge passes a clean run, and reports a single violation by its invariant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.judge import judge
from chaos.judge.invariants import INVARIANTS, KILLING
from chaos.profiles.catalogue import PROFILES
from outbox.messages.manifest import Position
from tests.unit.chaos.judge.fixtures_broken_run import AGED, park, violated
from tests.unit.chaos.judge.fixtures_clean_run import (
    COMMIT,
    ROLLBACK,
    TOPIC,
    UNIX,
    clean_run,
    manifest_row,
    resealed,
)
from tests.unit.chaos.judge.fixtures_run_folder import SHARD, RunFolder, half, name, tx

Break = Callable[[RunFolder], object]


def publish_again(run: RunFolder, number: int, kind: str = "REPAIR") -> None:
    """Append a record of a message, the first or a second one, in a new batch."""
    ends = run.watermarks[f"{TOPIC}/0"]
    manifests = run.tables["manifests"]
    to = Position(*manifests[-1]["to"])
    batch = {"batch": f"1.{len(manifests) + 1}.0", "offset": ends["end"]}
    like = next((r for r in run.tables["records"] if r["id"] == name(number)), None)
    half_row = run.row("halves", number)
    copied = {each: half_row[each] for each in ("tx", "sha", "content_digest")}
    like = like or {**run.tables["records"][0], **copied, "id": name(number)}
    run.tables["records"].append({**like, **batch})
    place = {each: like[each] for each in ("topic", "partition", "id")}
    run.tables["uncommitted"].append({**place, "offset": ends["end"]})
    ends.update(stable=ends["end"] + 2, end=ends["end"] + 2)
    manifests.append({**manifest_row((number,), to, to), "kind": kind})
    resealed(run)


def lose_record(run: RunFolder) -> None:
    """The manifest lists a record as held, but no record is held."""
    run.drop_record(3)
    run.tables["manifests"][1]["entries"][0][1] = "K"
    resealed(run)


def forget_acknowledged(run: RunFolder) -> None:
    """An acknowledged half message and everything about it is missing."""
    for table in ("halves", "ops"):
        run.tables[table].remove(run.row(table, 6))
    for process, lines in run.history.items():
        kept = [line for line in lines if line.get("about") != 6 or line["f"] == "prepare"]
        run.history[process] = kept


def swap_values(run: RunFolder) -> None:
    """Two records of different keys are exchanged in one batch."""
    first, second = run.record(3), run.record(4)
    for table in ("records", "uncommitted"):
        rows = run.tables[table]
        one = next(row for row in rows if row["id"] == name(3))
        other = next(row for row in rows if row["id"] == name(4))
        one["offset"], other["offset"] = other["offset"], one["offset"]
    assert first["offset"] > second["offset"]
    for line in run.lines("read"):
        for rec in line["recs"]:
            rec[2] = {name(3): name(4), name(4): name(3)}.get(rec[2], rec[2])


def pass_over(run: RunFolder) -> None:
    """The cursor passes a commit whose manifest it has not read, although there is one."""
    row = {"shard": SHARD, "xid": 2_500, "half_ids": [half(6)], "content_digests": [0]}
    run.tables["commit_log"].append(row)
    op = run.row("ops", 6)
    op.update(xid=2_500, decision=1)
    never_answered(run, 6, COMMIT)
    run.tables["progress"][0].update(position=2_500, position_n=1)
    publish_again(run, 6, "RELEASE")
    run.tables["manifests"][-1]["offset"] += 2
    run.watermarks["outbox.progress/1"].update(stable=99, end=99)
    run.tables["progress"][0]["manifest_offset"] = run.tables["manifests"][-1]["offset"]


def never_answered(run: RunFolder, number: int, sent: str) -> None:
    """The end of a message has no answer."""
    for line in run.lines("end"):
        if line["about"] == number and line["e"] == "ok":
            line.update(e="info")
        elif line["about"] == number:
            line["items"][0]["d"] = sent


def leave_gap(run: RunFolder) -> None:
    """A batch begins after a commit that no earlier batch has reached."""
    run.tables["manifests"][1].update(after=[2_003, 1], kind="REPAIR")
    resealed(run)


def keep_refused(run: RunFolder) -> None:
    """A prepare was refused, but there is a half message of its transaction."""
    refused = run.lines("prepare")[-2]["items"][0]["tx"]
    run.row("halves", 10)["tx"] = refused
    for line in run.lines("local"):
        for item in line["items"]:
            if item["tx"] == tx(10):
                item["tx"] = refused


def invent_decision(run: RunFolder) -> None:
    """A producer sent COMMIT, but its stored decision is ROLLBACK."""
    never_answered(run, 6, COMMIT)


def second_half(run: RunFolder, transaction: str | None = None) -> None:
    """There is another half message; it is parked if its transaction already has one."""
    row = {**run.row("halves", 6), "half_id": half(50), "id": name(50)}
    if transaction is None:
        run.tables["parked"].append({**row, **AGED})
    else:
        run.tables["halves"].append({**row, "tx": transaction})


def forget_checks(run: RunFolder) -> None:
    """The endpoint got more checks than the checkers recorded or lost in crashes."""
    for n in range(2):
        items = [{"id": name(8), "answered": "UNKNOWN"}]
        run.note("endpoint-0", 10.5 + n, "check", "ok", request=f"more {n}", items=items)


def answer_long_before_the_crash(run: RunFolder) -> None:
    """The endpoint answered a check that was not noted, but the crash came long after it."""
    run.note("harness", 40.0, "death", "ok", target="checker-0", why="kill")
    run.note("endpoint-0", 12.0, "check", "ok", items=[{"id": name(8), "answered": "UNKNOWN"}])


def spend_one_more(run: RunFolder) -> None:
    """A half has one spent check more than its group allows; a checker was killed meanwhile."""
    run.note("harness", 12.0, "death", "ok", target="checker-0", why="kill")
    like = run.tables["attempts"][0]
    for attempt in (3, 4):
        at = UNIX + 11.0
        more = {"attempt": attempt, "look_id": 900 + attempt, "applied": False, "asked_at": at}
        run.tables["attempts"].append({**like, **more})


def tell_otherwise(run: RunFolder) -> None:
    """A second answer shows the other decision."""
    item = {"id": name(0), "d": ROLLBACK}
    run.note("client-0", 17.0, "end", "invoke", items=[item], about=0, again=True)
    answer = {"status": 409, "slug": "already-decided", "decision": ROLLBACK}
    run.note("client-0", 17.1, "end", "ok", items=[answer], about=0, again=True)


def acknowledge_other(run: RunFolder) -> None:
    """The only answer shows COMMIT for a rolled back message."""
    for line in run.lines("end"):
        if line["about"] == 6:
            line["items"][0].update({"d": COMMIT} if line["e"] == "invoke" else {})
            line["items"][0].update({"state": "COMMITTED"} if line["e"] == "ok" else {})
    run.row("ops", 6)["decided_by"] = 3


def decide_against_truth(run: RunFolder) -> None:
    """The truth in SQLite differs from the answer to the check."""
    for line in run.lines("local"):
        for item in line["items"]:
            if item["tx"] == tx(8):
                item["decided"] = COMMIT


def leave_alteration(run: RunFolder) -> None:
    run.record(2)["sha"] = "another"


def other_key_than_asked(run: RunFolder) -> None:
    """Half message and record have the same key, which was never sent."""
    run.record(2)["key"] = run.row("halves", 2)["key"] = b"other".hex()


BREAKS: dict[str, tuple[Break, set[str]]] = {
    "a record visible twice": (lambda run: publish_again(run, 9), {"I1"}),
    "a record of a rollback": (lambda run: publish_again(run, 6), {"I2"}),
    "a commit that is nowhere": (lose_record, {"I3"}),
    "two answers that contradict each other": (tell_otherwise, {"I4"}),
    "an acknowledged half that is gone": (forget_acknowledged, {"I5"}),
    "an acknowledged commit that was rolled back": (acknowledge_other, {"I5"}),
    "an inversion": (swap_values, {"I6"}),
    "an altered value": (leave_alteration, {"I7"}),
    "an altered key": (other_key_than_asked, {"I7"}),
    "a torn transaction": (
        lambda run: run.record(2).update(batch="1.9.0"),
        {"I8"},
    ),
    "offset runs that name another place": (
        lambda run: run.tables["manifests"][1].update(before=[[TOPIC, 0, 900, 3]]),
        {"I8"},
    ),
    "a broken chain": (lambda run: run.tables["manifests"][1].update(prev_crc=5), {"I9"}),
    "an owner that came back": (lambda run: run.tables["manifests"][0].update(gen=2), {"I9"}),
    "a commit that was passed": (pass_over, {"I10"}),
    "a commit in another transaction": (
        lambda run: run.row("ops", 0).update(xid=3),
        {"I11"},
    ),
    "a check too early": (
        lambda run: run.tables["attempts"][0].update(asked_at=UNIX + 7.5),
        {"I12"},
    ),
    "a check too late": (
        lambda run: run.tables["attempts"][0].update(asked_at=UNIX + 60.0),
        {"I12"},
    ),
    "a decision without its verdict": (
        lambda run: run.tables["attempts"][1].update(applied=False),
        {"I13"},
    ),
    "a verdict without a check": (
        lambda run: run.lines("check")[3]["items"][0].update(answered="UNKNOWN"),
        {"I14"},
    ),
    "a transaction left open": (
        lambda run: run.watermarks[f"{TOPIC}/0"].update(stable=3),
        {"I16"},
    ),
    "a backlog": (lambda run: run.facts["ended"]["left"].update(prepared=1), {"I17"}),
    "a half that was parked too young": (
        lambda run: park(run, parked_at=UNIX + 85.0, parked_reason="max_age"),
        {"I12"},
    ),
    "a half that was parked with a check to spend": (
        lambda run: park(run, parked_at=UNIX + 85.0, parked_reason="check_max"),
        {"I12"},
    ),
    "a message that is still held": (
        lambda run: run.facts["ended"]["left"].update(held=1),
        {"I17"},
    ),
    "a shard that halted": (
        lambda run: run.tables["progress"][0].update(halt_reason="LAG"),
        {"I17"},
    ),
    "a refused prepare that is there": (keep_refused, {"I18"}),
    "a gap between two manifests": (leave_gap, {"I9"}),
    "a decision that no producer sent": (invent_decision, {"I18"}),
    "a half of a transaction that has one": (second_half, {"I5"}),
    "a half that is still undecided": (lambda run: second_half(run, "other"), {"I17"}),
    "a check that was not noted": (forget_checks, {"I12"}),
    "a check that was not noted, long before a crash": (answer_long_before_the_crash, {"I12"}),
    "a spent check too many beside a crash": (spend_one_more, {"I12"}),
    "an orphan without a lost tail": (
        lambda run: run.tables["already"].append({"id": name(0), "half_id": half(0)}),
        {"I2"},
    ),
    "a decision against the truth": (decide_against_truth, {"G7"}),
    "a poll that skips": (lambda run: run.lines("read")[0]["recs"].pop(1), {"poll"}),
    "a poll that goes back": (lambda run: run.lines("read")[0]["recs"].reverse(), {"poll"}),
    "another record at an offset": (
        lambda run: run.lines("read")[0]["recs"][0].__setitem__(2, name(5)),
        {"poll"},
    ),
}


def test_a_clean_run_passes_and_every_invariant_is_checked(tmp_path: Path) -> None:
    verdict = judge(clean_run(tmp_path / "run").write())
    assert (verdict.verdict, verdict.reasons, violated(verdict)) == ("PASS", [], set())
    checked = {each for each, found in verdict.invariants.items() if found["checked"]}
    assert checked == set(INVARIANTS) - {"I15"}, "no leaf was retired"
    assert (verdict.killed, verdict.messages) == (1, 10)


def test_a_verdict_shows_the_states_that_the_run_reached(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    publish_again(run, 3)
    run.tables["uncommitted"].append({**run.tables["uncommitted"][0], "offset": 10_000})
    found = judge(run.write()).reached
    assert found["manifest of kind batch"] == 3
    assert found["manifest of kind repair"] == 1
    assert found["decided by check: ROLLBACK"] == 2
    assert found["record of a transaction that was given up"] == 1


@pytest.mark.parametrize("what", BREAKS)
def test_a_single_violation_is_found_only_by_its_invariant(tmp_path: Path, what: str) -> None:
    run, (break_it, expected) = clean_run(tmp_path / "run"), BREAKS[what]
    break_it(run)
    verdict = judge(run.write())
    assert violated(verdict) == expected


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_every_state_that_a_profile_must_reach_can_be_reached(tmp_path: Path, profile: str) -> None:
    known = reached_by_everything(tmp_path / "run")
    mixes = PROFILES[profile].mixes
    known |= {f"fault {mix.kind}" for mix in mixes}
    killed = [mix.targets for mix in mixes if mix.kind in KILLING]
    known |= {f"{each.partition('-')[0]} killed" for targets in killed for each in targets}
    assert set(PROFILES[profile].must_reach) <= known


def reached_by_everything(path: Path) -> set[str]:
    """Return the states of a run in which everything that profiles want has happened."""
    run = clean_run(path)
    publish_again(run, 3, "RELEASE")
    run.tables["manifests"][0]["entries"][0][1] = "K"
    run.tables["manifests"][0]["entries"][1][1] = "S"
    resealed(run)
    run.tables["uncommitted"].append({**run.tables["uncommitted"][0], "offset": 10_000})
    run.tables["resolved"].append({"halt_reason": "database_changed"})
    run.tables["already"] += [{"id": name(n), "half_id": half(n)} for n in (0, 6)]
    aged = {**run.row("halves", 6), "half_id": half(50), "id": name(50), **AGED}
    run.tables["parked"].append(aged)
    run.tables["retired"].append({"leaf": 0})
    run.tables["halves"].remove(run.row("halves", 6))
    return set(judge(run.write()).reached)


def test_a_batch_that_kafka_dropped_after_its_commit_may_be_repaired(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.drop_record(9)
    assert violated(judge(run.write())) == {"I3", "I8"}
    repaired = clean_run(tmp_path / "repaired")
    copy = dict(repaired.record(9))
    repaired.drop_record(9)
    publish_again(repaired, 9)
    repaired.record(9).update(
        {each: copy[each] for each in copy if each not in ("batch", "offset")}
    )
    assert violated(judge(repaired.write())) == set()


def test_a_record_that_heals_is_seen_by_no_committed_reader(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    ends = run.watermarks[f"{TOPIC}/0"]
    healing = {"topic": TOPIC, "partition": 0, "offset": ends["end"], "id": None, "heal": True}
    run.tables["uncommitted"].append(healing)
    assert violated(judge(run.write())) == set()
    seen = clean_run(tmp_path / "seen")
    seen.tables["records"].append({**seen.tables["records"][0], **healing})
    assert "I2" in violated(judge(seen.write()))


def test_a_refused_prepare_must_not_be_in_kafka(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    run.record(5)["tx"] = run.lines("prepare")[-2]["items"][0]["tx"]
    assert "I18" in violated(judge(run.write()))
