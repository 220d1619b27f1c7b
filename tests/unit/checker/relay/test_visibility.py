"""A published batch counts as visible once every partition that it touched is past it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from checker.relay.visibility import MOST_WAITING, VisibilityWatch
from outbox.errors import KafkaUnavailable
from outbox.reconciliation.log import Offsets, Partition
from outbox.relay.protocol.state import Visible
from outbox.telemetry.metrics import Metrics
from tests.unit.checker.checks.fixtures_fakes import ManualClock

DATA, MANIFESTS = Partition("invoices", 0), Partition("outbox.progress", 3)
SHARD = 3


class Log:
    """Last stable offsets that a test moves, and how often they were asked for."""

    def __init__(self) -> None:
        self.stable = {DATA: 0, MANIFESTS: 0}
        self.asked: list[set[Partition]] = []
        self.away = False
        self.gone: set[Partition] = set()
        self.sought: list[Mapping[Partition, int]] = []

    def ends(self, partitions: Collection[Partition]) -> Offsets:
        """Return the offsets."""
        self.asked.append(set(partitions))
        if self.away:
            raise KafkaUnavailable("away")
        return Offsets(offsets={p: self.stable[p] for p in partitions if p in self.stable})

    def cut_off(self, ends: Mapping[Partition, int]) -> Collection[Partition]:
        """Return the partitions that are gone."""
        self.sought.append(dict(ends))
        return self.gone & ends.keys()


class Watched:
    """A watch on such a log, and a clock."""

    def __init__(self) -> None:
        self.log, self.clock, self.metrics = Log(), ManualClock(), Metrics()
        self.watch = VisibilityWatch(
            self.log.ends, self.clock, self.metrics, cut_off=self.log.cut_off
        )

    def commit(self, batch_no: int, data_end: int, *, shard: int = SHARD) -> None:
        ends = {DATA: data_end, MANIFESTS: 2 * batch_no}
        self.watch.committed(shard, Visible(batch_no, 2 * batch_no), ends)

    def look(self, data: int, manifests: int) -> Visible | None:
        self.log.stable = {DATA: data, MANIFESTS: manifests}
        self.watch.look()
        return self.watch.visible(SHARD)

    @property
    def seconds(self) -> float | None:
        return self.metrics.registry.get_sample_value("outbox_unconfirmed_seconds")


def test_a_batch_is_visible_when_both_its_records_and_its_manifest_are() -> None:
    watched = Watched()
    watched.commit(1, 5)
    assert watched.look(4, 9) is None
    assert watched.look(5, 1) is None
    assert watched.look(5, 2) == Visible(1, 2)


def test_a_later_batch_does_not_pass_one_that_hangs() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.watch.committed(SHARD, Visible(2, 4), {MANIFESTS: 4})
    assert watched.look(4, 9) is None
    assert watched.look(5, 9) == Visible(2, 4)


def test_one_question_asks_for_all_shards() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.commit(2, 8)
    watched.commit(1, 6, shard=7)
    watched.look(9, 9)
    assert watched.log.asked == [{DATA, MANIFESTS}]
    watched.look(9, 9)
    assert len(watched.log.asked) == 1


def test_the_gauge_is_the_age_of_the_oldest_unconfirmed_batch() -> None:
    watched = Watched()
    assert watched.seconds == 0
    watched.commit(1, 5)
    watched.clock.seconds += 4.0
    watched.commit(2, 8)
    watched.clock.seconds += 1.0
    assert watched.seconds == 5.0
    watched.look(5, 2)
    assert watched.seconds == 1.0
    watched.look(8, 4)
    assert watched.seconds == 0


def test_a_shard_with_a_batch_in_a_log_that_is_gone_is_read_again_once() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.commit(2, 8)
    watched.commit(1, 0, shard=7)
    watched.log.gone = {DATA}
    watched.clock.seconds += 2.0
    assert watched.look(6, 9) is None
    assert [watched.watch.is_gone(shard) for shard in (SHARD, SHARD, 7)] == [True, False, False]
    assert watched.seconds == 2.0
    watched.watch.settled(SHARD, proven=True)
    assert watched.seconds == 0


def test_only_logs_that_hide_a_batch_for_long_are_looked_for() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.commit(2, 8)
    watched.look(5, 9)
    assert watched.log.sought == []
    watched.clock.seconds += 2.0
    watched.look(5, 9)
    assert watched.log.sought == [{DATA: 8}]
    watched.look(8, 9)
    assert len(watched.log.sought) == 1


def test_a_dropped_producer_needs_no_second_reading() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.log.gone = {DATA}
    watched.clock.seconds += 2.0
    watched.look(0, 9)
    watched.watch.doubted(SHARD)
    assert not watched.watch.is_gone(SHARD)


def test_kafka_away_confirms_nothing() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.log.away = True
    assert watched.look(9, 9) is None


def test_what_a_dropped_producer_had_published_stays_unconfirmed_until_it_was_read() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.clock.seconds += 3.0
    watched.watch.doubted(SHARD)
    assert watched.look(9, 9) is None
    assert watched.seconds == 3.0
    watched.watch.settled(SHARD, proven=False)
    assert watched.seconds == 3.0
    watched.watch.settled(SHARD, proven=True)
    assert watched.seconds == 0


def test_a_released_shard_is_another_owners_concern() -> None:
    watched = Watched()
    watched.commit(1, 5)
    watched.clock.seconds += 3.0
    watched.watch.released(SHARD)
    assert (watched.seconds, watched.watch.visible(SHARD)) == (0, None)


def test_batches_that_hang_for_long_are_remembered_as_one() -> None:
    watched = Watched()
    for batch_no in range(1, MOST_WAITING + 100):
        watched.commit(batch_no, batch_no)
    assert watched.look(MOST_WAITING + 98, 9_999) == Visible(MOST_WAITING - 1, 2 * MOST_WAITING - 2)
    last = MOST_WAITING + 99
    assert watched.look(last, 9_999) == Visible(last, 2 * last)
