"""What became of the messages of batches that consumers were not known to see."""

from __future__ import annotations

from uuid import UUID

from outbox.messages.manifest import PUBLISHED, START, Entry, Kind, Manifest, Position
from outbox.messages.offset_run import OffsetRun, OffsetRuns
from outbox.relay.doubt import Destination, Doubt, InDoubt
from outbox.relay.protocol.state import Cursor, Found, Relay, require
from outbox.relay.unseen_batches import EARLIER_MS, UnseenBatches, doubt_of
from tests.fixtures_replacing import replace

A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))
AT = Position(9, 1)
RUN = OffsetRun("invoices", 0, 40, 1)


def batch(
    number: int, *ids: bytes, before: OffsetRuns | None = None, kind: Kind = Kind.BATCH
) -> Found:
    """Return a manifest that ends at (number, 1) and was written at that second."""
    manifest = Manifest(
        installation=UUID(int=7),
        shard=3,
        gen=1,
        kind=kind,
        batch_no=number,
        prev_crc=0,
        after=START,
        to=Position(number, 1),
        entries=tuple(Entry(each, PUBLISHED) for each in ids),
        before=before,
    )
    return Found(2 * number, manifest, 0, number * 1_000_000)


def known(batches: UnseenBatches, seen: frozenset[bytes]) -> tuple[bytes, ...]:
    found = batches.judge(seen, AT).known
    return require(found.manifest).published if found else ()


def test_what_is_listed_and_not_seen_is_absent() -> None:
    batches = UnseenBatches((batch(1, A, B),), ())
    assert batches.judge(frozenset({A}), AT).absent == (B,)


def test_absence_that_retention_explains_proves_nothing() -> None:
    batches = UnseenBatches((batch(1, A, B),), ())
    settled = batches.judge(frozenset(), AT, frozenset({B}))
    assert (settled.absent, settled.unprovable) == ((A,), (B,))


def test_what_consumers_see_needs_no_proof() -> None:
    settled = UnseenBatches((batch(1, A, B),), ()).judge(frozenset({B}), AT, frozenset({B}))
    assert (settled.absent, settled.unprovable) == ((A,), ())


def test_a_batch_that_the_stored_row_counts_is_listed_though_its_manifest_was_aborted() -> None:
    passed, later = batch(9, A), batch(10, B)
    batches = UnseenBatches((), (passed, later))
    assert batches.judge(frozenset(), AT).absent == (A,)
    assert batches.may_be_repeated(AT)


def test_what_is_visible_and_would_be_published_next_is_learned() -> None:
    batches = UnseenBatches((), (batch(10, A, B),))
    assert known(batches, frozenset({A})) == (A,)
    assert known(batches, frozenset()) == ()


def test_a_repair_that_is_visible_is_learned_though_its_batch_was_listed_before() -> None:
    batches = UnseenBatches((batch(1, A),), (batch(10, A, kind=Kind.REPAIR),))
    assert known(batches, frozenset({A})) == (A,)


def test_the_last_batch_is_looked_for_by_its_time_and_earlier_ones_by_their_runs() -> None:
    doubt = asked(batch(1, A), batch(2, B, before=(RUN,)))
    assert doubt.runs == (RUN,)
    assert (doubt.last_since_ms, doubt.since_ms) == (2_000_000 - EARLIER_MS, None)


def test_a_batch_without_runs_before_others_is_looked_for_by_its_time() -> None:
    """The manifest after a takeover does not know the runs of the batch before it."""
    doubt = asked(batch(1, A), batch(2, B, before=None), batch(3, C, before=(RUN,)))
    assert doubt.since_ms == 1_000_000 - EARLIER_MS


def test_the_last_batch_of_this_owner_is_looked_for_by_its_runs() -> None:
    """Its producer has said where the records are, so no clock is asked."""
    mine = asked(batch(1, A), batch(2, B, before=()), at=2, placed=(RUN,))
    assert (mine.runs, mine.last_since_ms) == ((RUN,), None)
    other = asked(batch(1, A), batch(2, B, before=()), at=1, placed=(RUN,))
    assert (other.runs, other.last_since_ms) == ((), 2_000_000 - EARLIER_MS)


def test_an_aborted_batch_is_looked_for_by_its_time() -> None:
    doubt = asked(batch(3, B, before=()), aborted=(batch(2, A),))
    assert doubt.since_ms == 2_000_000 - EARLIER_MS


def test_the_records_of_a_committed_batch_were_acknowledged() -> None:
    doubt = asked(batch(1, A), batch(2, B, before=None), batch(3, before=(RUN,)), batch(4, C))
    assert doubt.acknowledged == {A, B, C}


def test_a_manifest_that_an_empty_one_has_committed_may_lack_its_records() -> None:
    """A new owner writes such a one behind a manifest that hangs."""
    doubt = asked(batch(1, A), batch(2, B, before=(RUN,)), batch(3), batch(4, C))
    assert doubt.acknowledged == {A, C}


def test_an_aborted_batch_proves_no_record() -> None:
    assert asked(batch(3, B, before=()), aborted=(batch(2, A),)).acknowledged == {B}


def test_an_empty_manifest_has_no_records_to_look_for() -> None:
    doubt = asked(batch(1, A), batch(2, before=(RUN,)))
    assert (doubt.last_since_ms, doubt.since_ms) == (None, None)


def asked(
    *committed: Found,
    aborted: tuple[Found, ...] = (),
    at: int = 0,
    placed: OffsetRuns | None = None,
) -> Doubt:
    cursor = Cursor(START, 0, at, 0, 1)
    state = replace(Relay(shard=3), installation=UUID(int=7), cursor=cursor, before=placed)
    sent = Destination("invoices", key=None, partition=None)
    in_doubt = InDoubt({A: sent}, frozenset(), frozenset())
    return doubt_of(state, UnseenBatches(committed, aborted), in_doubt)
