"""Reads what became of a shard's last batches, from its manifests, PostgreSQL and the topics.

After a restore these may be the batches of a day. So the shard's row is renewed while Kafka is
read: another owner would end the session of one that gives no sign of life.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Final, TypeVar

from outbox.relay.ports import CommitLog, ProgressLog, UnseenRecords
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Relay, Visible
from outbox.relay.unseen_batches import UnseenBatches, doubt_of, ids_of

BEAT_SECONDS: Final = 5.0
T = TypeVar("T")


class BatchSettlement:
    """Answers ``Settle`` for one shard."""

    def __init__(
        self,
        commit_log: CommitLog,
        progress_log: ProgressLog,
        settlement: UnseenRecords,
        *,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self._commit_log = commit_log
        self._progress_log = progress_log
        self._settlement = settlement
        self._beat_seconds = beat_seconds

    def read(self, state: Relay, asked: actions.Settle) -> answers.BatchesSettled:
        """Return what hangs, or what became of the messages of the last batches."""
        batches = self._alive(lambda: self._batches_after(state, asked.visible, asked.end))
        listed = ids_of(batches.committed + batches.aborted)
        in_doubt = self._commit_log.in_doubt(listed, asked.position)
        doubt = doubt_of(state, batches, in_doubt)
        if not (doubt.next_ids or doubt.listed):
            return answers.BatchesSettled((), (), proven=True)
        hanging, seen, unprovable, hidden = self._alive(
            lambda: self._settlement.read(doubt, patient=asked.patient)
        )
        if seen is None:
            repeated = hidden or batches.may_be_repeated(asked.position)
            doubtful = not hanging and repeated
            return answers.BatchesSettled(hanging, (), proven=False, doubtful=doubtful)
        gone = frozenset(each for each in listed if each not in in_doubt.listed)
        return batches.judge(seen, asked.position, unprovable | gone)

    def _alive(self, read: Callable[[], T]) -> T:
        """Return what is read from Kafka in another thread; renew the shard's row meanwhile.

        If the session is lost, the thread reads to its end and nobody hears of it.
        """
        reading: Future[T] = Future()
        Thread(target=_fulfil, args=(reading, read), name="relay-settle", daemon=True).start()
        while wait((reading,), self._beat_seconds).not_done:
            self._commit_log.beat()
        return reading.result()

    def _batches_after(self, state: Relay, visible: Visible, end: int) -> UnseenBatches:
        """Return the batches that consumers were not known to see."""
        found = [
            each
            for each in self._progress_log.read_all(visible.offset, end, committed=False)
            if each.manifest is not None
            and (each.manifest.installation, each.manifest.shard)
            == (state.installation, state.shard)
            and each.manifest.batch_no > visible.batch_no
        ]
        if not found:
            return UnseenBatches((), ())
        read = self._progress_log.read_all(visible.offset, end, committed=True)
        committed = {each.offset for each in read}
        return UnseenBatches(
            tuple(each for each in found if each.offset in committed),
            tuple(each for each in found if each.offset not in committed),
        )


def _fulfil(reading: Future[T], read: Callable[[], T]) -> None:
    try:
        reading.set_result(read())
    except BaseException as error:
        reading.set_exception(error)
