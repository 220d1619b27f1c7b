"""What Kafka has is logged as published, and nothing else is."""

from __future__ import annotations

from checker.relay.unlogged_batches import UnloggedBatches
from outbox.relay.protocol.answers import Delivered, DeliveryReport
from outbox.relay.protocol.state import Cursor
from tests.unit.outbox.relay.protocol.fixtures_steps import AT, manifest


def batch(number: int) -> Delivered:
    """Return a batch that Kafka may have."""
    return manifest(batch_no=number), DeliveryReport(2, crc=number)


def after(number: int) -> Cursor:
    """Return the cursor after a batch."""
    return AT._replace(batch_no=number, crc=number)


def test_each_batch_since_the_last_save_is_logged_once() -> None:
    unlogged = UnloggedBatches()
    for number in (1, 2):
        unlogged.confirm(number - 1, number - 1)
        unlogged.doubt(batch(number))
    assert unlogged.until(after(2)) == (batch(1), batch(2))
    unlogged.logged()
    assert unlogged.until(after(2)) == ()


def test_a_batch_in_doubt_is_logged_once_the_chain_continues_after_it() -> None:
    unlogged = UnloggedBatches()
    unlogged.doubt(batch(2))
    assert unlogged.until(after(1)) == ()
    assert unlogged.until(after(2)) == (batch(2),)


def test_an_aborted_batch_is_not_logged_where_another_owner_used_its_number() -> None:
    unlogged = UnloggedBatches()
    unlogged.doubt(batch(2))
    assert unlogged.until(after(2)._replace(crc=0xAB)) == ()
    assert unlogged.until(after(2)) == ()
