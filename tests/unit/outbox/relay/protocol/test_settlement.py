"""Before it publishes, a relay ends what hangs and publishes again what no consumer will see."""

from __future__ import annotations

from outbox.messages.manifest import Kind, Manifest
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import NO_MANIFESTS, Cursor, Found, Phase, Relay, Visible
from tests.fixtures_replacing import replace
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDENTITY,
    IDS,
    PROVEN,
    after,
    commits,
    manifest,
    replaying,
    running,
    standing,
    stored,
)

SEEN = Visible(2, 3)
SETTLING = AT._replace(visible=SEEN)
HANGING = answers.BatchesSettled((("invoices", 4),), (), proven=False)
ABSENT = answers.BatchesSettled((), IDS, proven=True)
HIDDEN = answers.BatchesSettled((), (), proven=False)


def settling() -> Relay:
    """Return a relay that has read its manifests back, with one batch that nobody saw yet."""
    return replaying(SETTLING, end=AT.manifest_offset)


def test_the_batches_that_nobody_saw_are_read_before_anything_is_published() -> None:
    verified = replaying(SETTLING, end=9)
    _, plan = after(verified, answers.ManifestsRead((), True))
    assert plan == (actions.Settle(SEEN, 9, AT.position),)


def test_a_transaction_that_hangs_is_ended_by_an_abort_of_the_next_fence() -> None:
    """A new generation begins before: the former owner would take the abort for a commit."""
    state, plan = after(settling(), HANGING)
    assert plan == (
        actions.SaveProgress(SETTLING._replace(gen=5), IDENTITY, begins=True),
        actions.Begin(),
        actions.Heal((("invoices", 4),)),
        actions.DropHandle("healed"),
        actions.Rest(0.1),
    )
    assert (state.phase, state.cursor) == (Phase.VERIFY, None)
    assert after(state, answers.Rested())[1] == (actions.IdentifyStores(),)


def test_what_no_consumer_will_see_is_ordered_by_the_new_owner_alone() -> None:
    """The generation begins first, and the stored row still asks for the batch to be read."""
    state, plan = after(settling(), ABSENT)
    begun = SETTLING._replace(gen=5)
    assert plan == (
        actions.SaveProgress(begun, IDENTITY, begins=True),
        actions.OrderRepairs(5, IDS, SETTLING.batch_no),
        actions.ReadCommits(AT.position),
    )
    assert (state.phase, state.at.visible, state.dirty) == (Phase.RUN, Visible(3, 5), True)


def test_repairs_come_before_anything_new() -> None:
    state, _ = after(settling(), ABSENT)
    repair = answers.CommitsRead(1.0, AT.position, IDS, frozenset(), due=True)
    for _ in range(2):
        state, plan = after(replace(state, released_last=True), repair)
        assert plan == (actions.ReadHeld(AT.position, None),)
    state, plan = after(state, commits(*IDS))
    assert isinstance(plan[-1], actions.Publish)
    assert not state.repairing


def test_batches_behind_another_programs_transaction_delay_nothing_and_are_read_later() -> None:
    state, plan = after(settling(), HIDDEN)
    assert (state.phase, state.at.visible, state.unproven) == (Phase.RUN, SEEN, True)
    assert isinstance(plan[-1], actions.ReadCommits)
    state, plan = after(state, commits(at=50.0))
    assert plan == (actions.Settle(SEEN, 5, AT.position, patient=False),)
    state, plan = after(state, HIDDEN, commits(*IDS, at=50.9))
    assert isinstance(plan[-1], actions.Publish)
    state, plan = after(replace(state, batch=None), commits(at=51.0), PROVEN)
    assert (state.at.visible, state.unproven) == (Visible(3, 5), False)


def test_a_later_batch_does_not_hide_one_that_is_unproven() -> None:
    state, _ = after(settling(), HIDDEN)
    state = replace(state, settled_at=50.0)
    seen = replace(commits(at=50.1), visible=Visible(9, 40))
    assert after(state, seen)[0].at.visible == SEEN


def test_the_last_batches_are_read_while_publishing_goes_on_once_a_log_is_gone() -> None:
    gone = replace(commits(at=50.0), is_gone=True)
    state, plan = after(running(SETTLING), gone)
    assert plan == (actions.Settle(state.at.visible, 5, AT.position, patient=False),)
    state, _ = after(state, PROVEN)
    assert (state.at.visible, state.unproven) == (Visible(3, 5), False)


def test_no_fence_comes_of_the_relays_own_accord_while_a_batch_is_unconfirmed() -> None:
    """A fence may take a batch away that hangs; the next commit on its partition shows it."""
    state = running()
    visible = state.at.visible
    planned: list[actions.Action] = []
    for seconds in range(0, 3 * 86_400, 600):
        at = 100.0 + seconds
        answer = commits(*IDS, at=at) if seconds % 7_200 == 0 else commits(at=at)
        state, plan = after(state, replace(answer, visible=visible, awaited=True))
        planned += plan
        if isinstance(plan[-1], actions.Publish):
            good, place = len(plan[-1].batch.published), state.at.manifest_offset
            delivered = answers.Delivered(good, None, runs=(), offset=place, crc=seconds)
            state, plan = after(state, delivered, answers.CommitEnded(at, 0.01))
            planned += plan
        state, plan = after(state, answers.Rested())
        planned += plan
    fenced = (actions.Fence, actions.Heal, actions.DropHandle, actions.CloseSession)
    assert not [each for each in planned if isinstance(each, fenced)]
    assert (state.phase, state.at.visible) == (Phase.RUN, visible)
    assert state.at.batch_no > AT.batch_no + 30


def test_a_second_reading_keeps_the_repairs_first() -> None:
    state, _ = after(settling(), ABSENT)
    state, _ = after(replace(state, unproven=True), commits(at=50.0), PROVEN)
    assert state.repairing


def test_what_consumers_see_is_stored_with_the_next_save() -> None:
    seen = replace(commits(at=50.0), visible=Visible(4, 8))
    state, plan = after(running(), seen)
    assert plan[0] == actions.SaveProgress(state.at, IDENTITY)
    assert state.at.visible == Visible(4, 8)


def test_a_manifest_of_the_shard_that_hangs_is_committed_by_an_empty_one_behind_it() -> None:
    lone = manifest()
    state, plan = after(*opened(lone))
    batch = state.batch
    assert batch is not None
    assert (batch.kind, batch.batch_no, batch.prev_crc, batch.entries) == (Kind.BATCH, 5, 0xB7, ())
    assert (batch.after, batch.to) == (lone.to, lone.to)
    assert plan == (actions.Begin(), actions.Publish(batch))
    ended = (answers.Delivered(0, None, offset=9, crc=0xCC), answers.CommitEnded(1.0, 0.01))
    state, plan = after(state, *ended)
    assert (state.phase, plan) == (Phase.REPLAY, (actions.ReadBounds(),))


def test_a_manifest_that_does_not_continue_the_chain_is_not_committed() -> None:
    _, plan = after(*opened(manifest(batch_no=9)))
    assert plan == (actions.Rest(0.0),)


def test_a_manifest_that_hangs_and_begins_a_chain_after_at_least_once_is_committed_too() -> None:
    state, plan = after(*opened(manifest(batch_no=9, prev_crc=0)))
    batch = state.batch
    assert batch is not None
    assert (batch.batch_no, batch.prev_crc) == (10, 0xB7)
    assert plan == (actions.Begin(), actions.Publish(batch))


def test_without_manifests_nothing_is_settled() -> None:
    at_least_once = replace(settling(), at_least_once=True, cursor=AT)
    state, _ = after(at_least_once, answers.Bounds(None, 0, 0))
    assert state.phase is Phase.RUN


def test_what_exactly_once_left_is_settled_before_at_least_once_begins() -> None:
    """The new cursor is stored after the repairs, so that a death orders them again."""
    state, plan = entering(ABSENT)
    begun = SETTLING._replace(gen=5)
    entered = begun._replace(manifest_offset=NO_MANIFESTS, visible=Visible(3, 5))
    assert plan == (
        actions.SaveProgress(begun, IDENTITY, begins=True),
        actions.OrderRepairs(5, IDS, SETTLING.batch_no),
        actions.SaveProgress(entered, IDENTITY),
        actions.DropHandle("delivery_mode"),
        actions.Rest(0.0),
    )
    verified, plan = after(state, answers.Rested(), standing(stored(entered)))
    assert plan == (actions.Fence(listed=False),)
    assert not verified.entering


def test_at_least_once_does_not_begin_while_another_program_hides_the_last_batches() -> None:
    state, plan = entering(HIDDEN)
    assert (state.phase, plan) == (Phase.REPLAY, (actions.Rest(4.0),))


def entering(settled: answers.BatchesSettled) -> tuple[Relay, tuple[actions.Action, ...]]:
    """Return where a relay that enters at_least_once goes once the last batches are read."""
    lane = Relay(shard=3, at_least_once=True)
    verified, plan = after(lane, answers.Rested(), answers.LockTaken(), standing(stored(SETTLING)))
    assert plan == (actions.Fence(listed=True),)
    end = AT.manifest_offset
    return after(verified, answers.Fenced(), answers.Bounds(stored(SETTLING), 0, end), settled)


def opened(lone: Manifest) -> tuple[Relay, answers.Answer, answers.Answer]:
    """Return a relay behind an open manifest, and the answers that show it."""
    nothing = answers.ManifestsRead((), False, 10.0)
    return replaying(), nothing, answers.OpenManifestsRead((Found(7, lone, 0xB7),))


def test_the_offset_of_unseen_batches_stays_inside_the_log() -> None:
    early = Cursor(AT.position, 5, 3, 0xAA, 4, Visible(1, 0))
    verified = replaying(early)
    assert verified.at.visible == Visible(1, 0)
    assert replaying(early._replace(visible=Visible(1, 8))).at.visible == Visible(1, 5)
