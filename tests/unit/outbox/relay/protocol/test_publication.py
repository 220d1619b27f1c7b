"""The relay publishes, doubts and fails: each test asks for the plan at one point."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.messages.manifest import PUBLISHED, PUBLISHED_BEFORE, Entry, Position
from outbox.relay.protocol import actions as do
from outbox.relay.protocol import answers as came
from outbox.relay.protocol.state import Cursor, Failure, Phase, Refused, Relay
from outbox.relay.protocol.transition import backoff_seconds
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDENTITY,
    IDS,
    after,
    commits,
    in_batch,
    manifest,
    running,
)

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
        (came.Delivered(1, None), "undelivered"),
        (came.Delivered(3, None), "undelivered"),
        (came.Delivered(1, Refused.RECORD), "refused"),
    ],
)
def test_a_report_too_few_drops_the_handle(delivered: came.Delivered, reason: str) -> None:
    state, plan = after(in_batch(), delivered)
    assert state.phase is Phase.VERIFY
    assert plan == (do.DropHandle(reason), do.Rest(0.1))


def test_the_manifest_comes_last_and_then_the_commit() -> None:
    state, plan = after(in_batch(), came.Delivered(2, None))
    assert plan == (do.PublishManifest(manifest(gen=5)),)
    assert after(state, came.ManifestDelivered(7, 0xCC))[1] == (do.Commit(),)


@pytest.mark.parametrize("offset", [-1, 4], ids=["unknown", "below the last one"])
def test_a_manifest_without_a_credible_offset_is_not_committed(offset: int) -> None:
    _, plan = after(in_batch(), came.Delivered(2, None), came.ManifestDelivered(offset, 0xCC))
    assert plan == (do.DropHandle("manifest"), do.Rest(0.1))


def committed(seconds: float = 0.01, at: float = 100.0) -> tuple[Relay, tuple[do.Action, ...]]:
    produced = (came.Delivered(2, None), came.ManifestDelivered(7, 0xCC))
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
    more = (commits(b"c" * 16), came.Delivered(1, None), came.ManifestDelivered(9, 1))
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
    assert after(state, came.Rested())[1] == (do.IdentifyStores(),)


def test_failures_in_a_row_wait_longer_up_to_five_seconds() -> None:
    assert [backoff_seconds(n) for n in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]


def test_only_a_commit_or_an_empty_look_ends_a_row_of_failures() -> None:
    failed = replace(running(), failures=4)
    assert after(failed, commits(*IDS))[0].failures == 4
    assert after(failed, commits(at=1.0))[0].failures == 0


def test_a_drop_saves_what_was_known_before_the_doubt() -> None:
    state, _ = committed()
    dirty = replace(state, dirty=True)
    produced = (commits(b"c" * 16), came.Delivered(0, None))
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
