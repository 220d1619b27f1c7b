"""The relay's rules, one by one: each test leads a state to a point and asks for the next plan."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from outbox.manifest import (
    HELD,
    PUBLISHED,
    PUBLISHED_BEFORE,
    START,
    Entry,
    Kind,
    Manifest,
    Position,
)
from outbox.relay_protocol import actions as do
from outbox.relay_protocol import answers as came
from outbox.relay_protocol.leaving import backoff_seconds
from outbox.relay_protocol.state import (
    SHARDS,
    Cursor,
    Failure,
    Found,
    HaltReason,
    Identity,
    Phase,
    Progress,
    Relay,
)
from outbox.relay_protocol.step import step

INSTALLATION = UUID(int=7)
IDENTITY = Identity("cluster", "topic", "system")
FIRST = Cursor(START, 0, 0, 0, 0)
AT = Cursor(Position(90, 2), 5, 3, 0xAA, 4)
IDS = (b"a" * 16, b"b" * 16)
IDLE = Relay(shard=3)


def after(state: Relay, *answers: came.Answer) -> tuple[Relay, tuple[do.Action, ...]]:
    """Return where these answers lead, and the last plan."""
    plan: tuple[do.Action, ...] = ()
    for answer in answers:
        state, plan = step(state, answer)
    return state, plan


def standing(progress: Progress | None = None, **fields: object) -> came.Standing:
    known = {"identity": IDENTITY, "partitions": SHARDS, **fields}
    return came.Standing(INSTALLATION, progress=progress, **known)  # type: ignore[arg-type]


def stored(cursor: Cursor | None = AT, halt: HaltReason | None = None) -> Progress:
    return Progress(cursor, IDENTITY, halt)


def replaying(cursor: Cursor = AT, end: int = 9) -> Relay:
    """A relay that has just been told where its log ends."""
    verified, _ = after(IDLE, came.Rested(), came.LockTaken(), standing(stored(cursor)))
    return after(verified, came.Fenced(), came.Bounds(stored(cursor), 0, end))[0]


def running(cursor: Cursor = AT) -> Relay:
    return replaying(cursor, end=cursor.manifest_offset)


def in_batch(*ids: bytes) -> Relay:
    """A relay whose records were just produced."""
    return after(running(), commits(*(ids or IDS)))[0]


def commits(
    *ids: bytes, at: float = 100.0, before: frozenset[bytes] = frozenset()
) -> came.CommitsRead:
    return came.CommitsRead(at, Position(91, len(ids)), ids, before)


def manifest(cursor: Cursor = AT, *ids: bytes, **fields: object) -> Manifest:
    made = Manifest(
        installation=INSTALLATION,
        shard=3,
        gen=cursor.gen,
        kind=Kind.BATCH,
        batch_no=cursor.batch_no + 1,
        prev_crc=cursor.crc,
        after=cursor.position,
        to=Position(cursor.position.xid + 1, len(ids or IDS)),
        entries=tuple(Entry(message_id, PUBLISHED) for message_id in ids or IDS),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def read(*manifests: Manifest | None, reached: bool = True) -> came.ManifestsRead:
    found = tuple(Found(5 + 2 * n, m, 0xB0 + n) for n, m in enumerate(manifests))
    return came.ManifestsRead(found, reached)


def same(made: Manifest, **fields: object) -> came.Compared:
    ids = tuple(entry.message_id for entry in made.entries)
    known = {"message_ids": ids, "below_watermark": True, "held": frozenset(), **fields}
    return came.Compared(**known)  # type: ignore[arg-type]


# -- IDLE and VERIFY -----------------------------------------------------------------------------


def test_a_relay_asks_for_the_lock_before_anything_else() -> None:
    assert after(IDLE, came.Rested()) == (IDLE, (do.TryLock(),))


def test_a_busy_lock_is_asked_for_again_within_a_second() -> None:
    state, plan = after(IDLE, came.LockBusy(0.0, START, False))
    assert (state.phase, plan) == (Phase.IDLE, (do.Rest(0.5),))


def test_an_owner_with_work_that_stands_still_for_thirty_seconds_loses_its_session() -> None:
    busy = [came.LockBusy(at, START, True) for at in (0.0, 29.9)]
    state, plan = after(IDLE, *busy)
    assert plan == (do.Rest(0.5),)
    assert after(state, came.LockBusy(30.0, START, True))[1][0] == do.TerminateHolder()


@pytest.mark.parametrize(
    "later",
    [came.LockBusy(40.0, Position(1, 1), True), came.LockBusy(40.0, START, False)],
    ids=["it moved", "it has nothing to do"],
)
def test_an_owner_that_is_not_stuck_keeps_its_session(later: came.LockBusy) -> None:
    state, _ = after(IDLE, came.LockBusy(0.0, START, True))
    assert after(state, later)[1] == (do.Rest(0.5),)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"identity": IDENTITY._replace(cluster_id="other")}, HaltReason.CLUSTER_CHANGED),
        ({"identity": IDENTITY._replace(topic_id="other")}, HaltReason.TOPIC_CHANGED),
        ({"identity": IDENTITY._replace(pg_system_id="other")}, HaltReason.DATABASE_CHANGED),
        ({"partitions": 12}, HaltReason.TOPIC_CHANGED),
    ],
)
def test_a_changed_store_halts_before_anyone_is_fenced(
    changed: dict[str, object], reason: HaltReason
) -> None:
    state, plan = after(IDLE, came.LockTaken(), standing(stored(), **changed))
    assert (state.phase, state.halt) == (Phase.HALT, reason)
    assert plan[0] == do.StoreHalt(reason)
    assert do.Fence() not in plan


def test_a_stored_halt_is_kept_until_somebody_resolves_it() -> None:
    halted = standing(stored(halt=HaltReason.PROGRESS_LOST))
    state, plan = after(IDLE, came.LockTaken(), halted)
    assert (state.halt, plan) == (HaltReason.PROGRESS_LOST, (do.Rest(2.0),))
    assert after(state, came.Rested(), standing(stored()))[1] == (do.Fence(),)


# -- FENCE and REPLAY ----------------------------------------------------------------------------


def test_the_log_is_read_only_after_the_fence() -> None:
    state, plan = after(IDLE, came.LockTaken(), standing())
    assert plan == (do.Fence(),)
    assert after(state, came.Fenced())[1] == (do.ReadBounds(),)


def test_the_first_start_begins_at_nothing() -> None:
    state, _ = after(IDLE, came.LockTaken(), standing(), came.Fenced())
    state, plan = after(state, came.Bounds(None, 0, 0))
    begun = Cursor(START, 0, 0, 0, 1)
    assert (state.phase, state.cursor) == (Phase.RUN, begun)
    assert plan == (do.SaveProgress(begun, IDENTITY), do.ReadCommits(START))


@pytest.mark.parametrize(
    ("progress", "start", "end", "reason"),
    [
        (None, 0, 4, HaltReason.CURSOR_MISSING),
        (stored(None), 0, 4, HaltReason.CURSOR_MISSING),
        (stored(), 6, 9, HaltReason.PROGRESS_LOST),
        (stored(), 0, 4, HaltReason.PROGRESS_LOST),
    ],
    ids=["no row", "only a halt was stored", "expired", "truncated"],
)
def test_a_log_that_does_not_fit_the_cursor_halts(
    progress: Progress | None, start: int, end: int, reason: HaltReason
) -> None:
    state, _ = after(IDLE, came.LockTaken(), standing(progress), came.Fenced())
    halted, plan = after(state, came.Bounds(progress, start, end))
    assert (halted.halt, plan[0]) == (reason, do.StoreHalt(reason))


def test_a_manifest_that_equals_the_commit_log_moves_the_position() -> None:
    made = manifest()
    state, plan = after(replaying(), read(made))
    assert plan == (do.Compare(AT.position, made),)
    state, plan = after(state, same(made))
    assert state.cursor == Cursor(made.to, 9, 4, 0xB0, 5)
    assert plan[0] == do.SaveProgress(state.at, IDENTITY)


@pytest.mark.parametrize(
    "difference",
    [
        {"message_ids": IDS[::-1]},
        {"message_ids": IDS[:1]},
        {"message_ids": (*IDS, b"c" * 16)},
        {"below_watermark": False},
    ],
    ids=["another order", "one missing", "one more", "not final"],
)
def test_a_manifest_that_differs_is_history_and_the_position_stays(
    difference: dict[str, object],
) -> None:
    made = manifest()
    state, plan = after(replaying(), read(made), same(made, **difference))
    moved = Cursor(AT.position, 6, 4, 0xB0, 4)
    assert plan == (do.Recover(made, 5, moved, IDENTITY),)
    assert after(state, came.Recovered())[0].at.position == AT.position


def test_a_range_that_does_not_begin_at_the_position_is_history() -> None:
    made = manifest(after=Position(80, 1))
    _, plan = after(replaying(), read(made), same(made))
    assert isinstance(plan[0], do.Recover)


def test_a_held_entry_needs_its_held_record() -> None:
    made = manifest(entries=(Entry(IDS[0], PUBLISHED), Entry(IDS[1], HELD)))
    state, _ = after(replaying(), read(made))
    assert isinstance(after(state, same(made))[1][0], do.Recover)
    fast = after(state, same(made, held=frozenset(IDS[1:])))[0]
    assert fast.at.position == made.to


def test_after_the_first_difference_no_manifest_is_compared() -> None:
    one = manifest()
    behind = Cursor(one.to, 0, one.batch_no, 0xB0, one.gen)
    two = manifest(behind, b"c" * 16)
    state, _ = after(replaying(), read(one, two), same(one, below_watermark=False))
    _, plan = after(state, came.Recovered())
    assert plan == (do.Recover(two, 7, Cursor(AT.position, 8, 5, 0xB1, 4), IDENTITY),)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (manifest(batch_no=5), HaltReason.CHAIN_BROKEN),
        (manifest(batch_no=3), HaltReason.CHAIN_BROKEN),
        (manifest(prev_crc=1), HaltReason.CHAIN_BROKEN),
        (manifest(shard=4), HaltReason.CHAIN_BROKEN),
        (None, HaltReason.CHAIN_BROKEN),
        (manifest(installation=UUID(int=8)), HaltReason.FOREIGN_MANIFEST),
    ],
    ids=["gap", "repeat", "crc", "shard", "no manifest", "another installation"],
)
def test_a_broken_chain_halts(made: Manifest | None, reason: HaltReason) -> None:
    state, plan = after(replaying(), read(made))
    assert (state.phase, state.halt, plan[0]) == (Phase.HALT, reason, do.StoreHalt(reason))


def test_manifests_are_read_on_until_the_end_is_reached() -> None:
    made = manifest()
    _, plan = after(replaying(end=20), read(made, reached=False), same(made))
    assert plan == (do.ReadManifests(6, 20),)


def test_an_end_that_is_not_reached_is_told_and_tried_again() -> None:
    state, plan = after(replaying(), came.ManifestsRead((), False))
    assert plan == (do.StoreHalt(HaltReason.REPLAY_STUCK), do.Rest(5.0))
    assert after(state, came.Rested())[1] == (do.ReadManifests(5, 9),)
    assert after(state, came.Rested(), came.ManifestsRead((), True))[0].halt is None


def test_a_new_owner_writes_a_higher_generation() -> None:
    made = manifest(gen=9)
    state, _ = after(replaying(), read(made), same(made))
    assert state.at.gen == 10


# -- RUN -----------------------------------------------------------------------------------------


def test_a_batch_lists_what_kafka_has_already_and_does_not_repeat_it() -> None:
    state, plan = after(running(), commits(*IDS, before=frozenset(IDS[:1])))
    assert state.batch is not None
    assert state.batch.entries == (Entry(IDS[0], PUBLISHED_BEFORE), Entry(IDS[1], PUBLISHED))
    assert plan == (do.Begin(), do.Publish(state.batch))


def test_a_batch_continues_the_chain() -> None:
    made = in_batch().batch
    assert made == manifest(gen=AT.gen + 1)


@pytest.mark.parametrize(
    ("delivered", "reason"),
    [
        (came.Delivered(1, False), "undelivered"),
        (came.Delivered(3, False), "undelivered"),
        (came.Delivered(1, True), "refused"),
    ],
)
def test_a_report_too_few_drops_the_handle(delivered: came.Delivered, reason: str) -> None:
    state, plan = after(in_batch(), delivered)
    assert state.phase is Phase.VERIFY
    assert plan == (do.DropHandle(reason), do.Rest(0.1))


def test_the_manifest_comes_last_and_then_the_commit() -> None:
    state, plan = after(in_batch(), came.Delivered(2, False))
    assert plan == (do.PublishManifest(manifest(gen=5)),)
    assert after(state, came.ManifestDelivered(7, 0xCC))[1] == (do.Commit(),)


@pytest.mark.parametrize("offset", [-1, 4], ids=["unknown", "below the last one"])
def test_a_manifest_without_a_credible_offset_is_not_committed(offset: int) -> None:
    _, plan = after(in_batch(), came.Delivered(2, False), came.ManifestDelivered(offset, 0xCC))
    assert plan == (do.DropHandle("manifest"), do.Rest(0.1))


def committed(seconds: float = 0.01, at: float = 100.0) -> tuple[Relay, tuple[do.Action, ...]]:
    produced = (came.Delivered(2, False), came.ManifestDelivered(7, 0xCC))
    return after(in_batch(), *produced, came.CommitEnded(at, seconds))


def test_a_clean_commit_moves_the_cursor_and_keeps_the_handle() -> None:
    state, plan = committed(0.49)
    moved = Cursor(Position(91, 2), 8, 4, 0xCC, 5)
    assert (state.phase, state.cursor) == (Phase.RUN, moved)
    assert plan == (do.SaveProgress(moved, IDENTITY), do.Rest(0.0))


def test_a_slow_commit_drops_the_handle_whatever_it_returned() -> None:
    state, plan = committed(0.5)
    assert (state.phase, state.cursor) == (Phase.VERIFY, None)
    assert plan == (do.DropHandle("slow_commit"), do.Rest(0.1))


def test_progress_is_written_at_most_once_a_second() -> None:
    state, _ = committed(at=100.0)
    more = (commits(b"c" * 16), came.Delivered(1, False), came.ManifestDelivered(9, 1))
    early, plan = after(state, *more, came.CommitEnded(100.9, 0.01))
    assert plan == (do.Rest(0.0),)
    idle, plan = after(early, commits(at=100.95))
    assert plan == (do.Rest(pytest.approx(0.05), until_commits=True),)  # type: ignore[arg-type]
    assert isinstance(after(idle, commits(at=101.0))[1][0], do.SaveProgress)


def test_an_idle_shard_writes_nothing_and_waits_for_commits() -> None:
    _, plan = after(running(), commits(at=5.0))
    assert plan == (do.Rest(1.0, until_commits=True),)


def test_an_idle_shard_signs_its_log_once_a_day() -> None:
    state, _ = after(running(), commits(at=0.0))
    state, plan = after(state, commits(at=86_400.0))
    assert state.batch is not None
    assert (state.batch.entries, state.batch.after) == ((), state.batch.to)
    assert plan == (do.Begin(), do.PublishManifest(state.batch))


# -- Failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [Failure.DATABASE, Failure.OVERTAKEN, Failure.FENCED])
def test_a_lost_session_or_fence_gives_the_shard_back(failure: Failure) -> None:
    state, plan = after(in_batch(), came.Failed(failure))
    assert (state.phase, state.cursor, state.batch) == (Phase.IDLE, None, None)
    assert plan == (do.DropHandle(failure.value), do.CloseSession(), do.Rest(0.1))


def test_a_failure_of_kafka_costs_only_the_handle() -> None:
    state, plan = after(in_batch(), came.Failed(Failure.KAFKA))
    assert state.phase is Phase.VERIFY
    assert plan == (do.DropHandle("kafka"), do.Rest(0.1))
    assert after(state, came.Rested())[1] == (do.ReadStanding(),)


def test_failures_in_a_row_wait_longer_up_to_five_seconds() -> None:
    assert [backoff_seconds(n) for n in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]


def test_only_a_commit_or_an_empty_look_ends_a_row_of_failures() -> None:
    failed = replace(running(), failures=4)
    assert after(failed, commits(*IDS))[0].failures == 4
    assert after(failed, commits(at=1.0))[0].failures == 0


def test_a_drop_saves_what_was_known_before_the_doubt() -> None:
    state, _ = committed()
    dirty = replace(state, dirty=True)
    produced = (commits(b"c" * 16), came.Delivered(0, False))
    assert after(dirty, *produced)[1][0] == do.SaveProgress(state.at, IDENTITY)


def test_stopping_saves_and_frees_the_shard() -> None:
    state = replace(committed()[0], dirty=True)
    stopped, plan = after(state, came.StopAsked())
    assert stopped.phase is Phase.IDLE
    assert plan == (
        do.SaveProgress(state.at, IDENTITY),
        do.DropHandle("stopped"),
        do.CloseSession(),
        do.Rest(0.0),
    )
