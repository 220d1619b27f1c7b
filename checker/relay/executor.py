"""Performs the relay's plans on PostgreSQL and Kafka; decides nothing.

Errors of the two stores leave it as they are: the loop turns them into the protocol's failures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from checker.relay.observer import RelayObserver
from outbox.clock import Clock
from outbox.failpoints import hit
from outbox.messages.manifest import PUBLISHED, Kind, Manifest, crc_of, encode
from outbox.messages.record import Committed, Record, record_of
from outbox.relay.ports import CommitLog, Delivery, ProgressLog, PublishedBatch, Publisher, Refusal
from outbox.relay.protocol import actions as do
from outbox.relay.protocol import answers as came
from outbox.relay.protocol.state import Identity, Relay


class RelayExecutor:
    """What a shard's relay has in its hands: a session, a handle, the batch that was read last."""

    def __init__(
        self,
        commit_log: CommitLog,
        publisher: Publisher,
        progress_log: ProgressLog,
        clock: Clock,
        facts: RelayObserver,
    ) -> None:
        self._commit_log = commit_log
        self._publisher = publisher
        self._progress_log = progress_log
        self._clock = clock
        self._facts = facts
        self._ahead = 0.0
        """PostgreSQL's clock less the monotonic one (s), as of the last look at who is who."""
        self._messages: Sequence[Committed] = ()
        self._redriven: str | None = None
        self._decided: tuple[float, ...] = ()
        """When the batch's first and last message were decided, in monotonic seconds."""
        self._sent: list[Committed] = []
        self._delivery: Delivery | None = None
        self._doubtful: PublishedBatch | None = None
        """The batch whose transaction may or may not have been committed."""
        self._published: list[PublishedBatch] = []
        """Batches that Kafka has and ``publication_log`` has not yet: at most a second of them."""

    def perform(self, state: Relay, plan: tuple[do.Action, ...]) -> came.Answer:
        """Do the plan in order and return the last action's answer; the first error ends it."""
        answer: came.Answer = came.Rested()
        for action in plan:
            answer = _DO[type(action)](self, state, action) or answer
            if type(action) in _AFTER:
                hit(_AFTER[type(action)])
        return answer

    # -- The lock, and who is who ----------------------------------------------------------------

    def _try_lock(self, _: Relay, __: do.TryLock) -> came.Answer:
        if hit("relay.lock") or self._commit_log.try_lock():
            return came.LockTaken()
        rival = self._commit_log.rival()
        return came.LockBusy(self._clock.monotonic(), rival.position, rival.waiting)

    def _terminate_holder(self, _: Relay, __: do.TerminateHolder) -> None:
        self._commit_log.terminate_holder()

    def _close_session(self, _: Relay, __: do.CloseSession) -> None:
        self._commit_log.close()
        self._doubtful = None
        self._published.clear()

    def _read_standing(self, _: Relay, __: do.IdentifyStores) -> came.Answer:
        installation, pg_system_id = self._commit_log.installation()
        cluster = self._progress_log.cluster()
        identity = Identity(cluster.cluster_id, cluster.topic_id, pg_system_id)
        progress = self._commit_log.progress()
        self._ahead = self._commit_log.now() - self._clock.monotonic()
        return came.StoresIdentified(installation, identity, cluster.partitions, progress)

    # -- Taking over -----------------------------------------------------------------------------

    def _fence(self, state: Relay, _: do.Fence) -> came.Answer:
        assert state.installation is not None
        self._publisher.fence(state.installation)
        return came.Fenced()

    def _read_bounds(self, _: Relay, __: do.ReadBounds) -> came.Answer:
        """Read the row first: while another owner works, the log only grows beyond it."""
        progress = self._commit_log.progress()
        return came.Bounds(progress, *self._progress_log.bounds())

    def _read_manifests(self, _: Relay, asked: do.ReadManifests) -> came.Answer:
        found, reached = self._progress_log.read(asked.first, asked.end)
        return came.ManifestsRead(found, reached)

    def _compare(self, _: Relay, asked: do.Compare) -> came.Answer:
        seen = self._commit_log.compare(asked.after, asked.manifest)
        return came.Compared(seen.message_ids, seen.below_watermark, seen.held)

    def _recover(self, state: Relay, asked: do.Recover) -> came.Answer:
        manifest = asked.manifest
        lost = self._commit_log.recover(manifest, asked.offset, asked.cursor, asked.identity)
        self._facts.recovered(state, len(manifest.published), rolled_back=lost)
        return came.Recovered()

    def _store_halt(self, _: Relay, asked: do.StoreHalt) -> None:
        self._commit_log.halt(asked.reason)

    def _save_progress(self, _: Relay, asked: do.SaveProgress) -> None:
        self._settle(asked.cursor.batch_no, asked.cursor.crc)
        published = tuple(self._published)
        self._commit_log.save(asked.cursor, asked.identity, published, begins=asked.begins)
        self._published.clear()

    def _mark_released(self, _: Relay, asked: do.MarkReleased) -> came.Answer:
        cursor, manifest = asked.cursor, asked.manifest
        self._settle(cursor.batch_no, cursor.crc)
        published = tuple(self._published)
        places = next((b.places for b in published if b.batch_no == manifest.batch_no), None)
        self._commit_log.mark_released(manifest, places, cursor, asked.identity, published)
        self._published.clear()
        return came.Marked()

    def _settle(self, batch_no: int, crc: int) -> None:
        """Take the doubtful batch for published where the chain goes on behind it."""
        doubtful = self._doubtful
        if doubtful is not None and doubtful.batch_no <= batch_no:
            if (doubtful.batch_no, doubtful.crc) == (batch_no, crc):
                self._published.append(doubtful)
            self._doubtful = None

    # -- Publishing ------------------------------------------------------------------------------

    def _read_commits(self, _: Relay, asked: do.ReadCommits) -> came.Answer:
        self._sent, self._delivery = [], None
        began = self._clock.monotonic()
        commits = self._commit_log.read(asked.after, asked.most)
        self._messages, self._redriven = commits.messages, None
        self._decided = tuple(began - age for age in commits.ages)
        return came.CommitsRead(
            self._clock.monotonic(),
            commits.to,
            commits.message_ids,
            commits.before,
            commits.held,
            commits.due,
        )

    def _hold(self, state: Relay, asked: do.Hold) -> None:
        refusal = self._refusal() if asked.refused else None
        self._commit_log.hold(asked.batch, asked.message_ids, refusal)
        self._facts.held(state, asked.message_ids, refusal)

    def _refusal(self) -> Refusal:
        assert self._delivery is not None
        assert self._delivery.refused is not None
        return self._delivery.refused

    def _read_held(self, _: Relay, asked: do.ReadHeld) -> came.Answer:
        self._sent, self._delivery = [], None
        held = self._commit_log.read_held(asked.position, asked.most)
        if held is None:
            return came.HeldRead(Kind.RELEASE, (), frozenset())
        self._messages, self._redriven = held.messages, held.redriven
        self._decided = ()
        return came.HeldRead(held.kind, held.message_ids, held.before)

    def _postpone(self, _: Relay, asked: do.Postpone) -> None:
        self._commit_log.postpone(asked.message_id, self._refusal())

    def _begin(self, _: Relay, __: do.Begin) -> None:
        self._publisher.begin()

    def _publish(self, state: Relay, asked: do.Publish) -> came.Answer:
        records = self._render(asked.batch, listed=state.at.is_listed)
        self._delivery = delivery = self._publisher.publish(records, self._stamp())
        if delivery.refused is not None:
            refused = delivery.refused
            self._facts.refused(state, self._sent[refused.place], refused.error)
        return came.Delivered(delivery.good, delivery.refused and delivery.refused.refused)

    def _render(self, batch: Manifest, *, listed: bool) -> list[Record]:
        prefix = f"{batch.shard}.{batch.batch_no}."
        pairs = [
            (message, prefix + str(index))
            for index, (message, entry) in enumerate(
                zip(self._messages, batch.entries, strict=True)
            )
            if entry.status == PUBLISHED
        ]
        self._sent = [message for message, _ in pairs]
        return [
            record_of(message, place if listed else None, self._redriven)
            for message, place in pairs
        ]

    def _publish_manifest(self, _: Relay, asked: do.PublishManifest) -> came.Answer:
        batch, value = asked.batch, encode(asked.batch)
        offset, crc = self._publisher.publish_manifest(value, self._stamp()), crc_of(value)
        self._settle(batch.batch_no - 1, batch.prev_crc)
        if self._delivery is not None:
            half_ids = [message.half_id for message in self._sent]
            self._doubtful = PublishedBatch(
                batch.batch_no, crc, batch.after, batch.to, half_ids, self._delivery.places
            )
        return came.ManifestDelivered(offset, crc)

    def _commit(self, state: Relay, _: do.Commit) -> came.Answer:
        hit("relay.before_commit")
        began = self._clock.monotonic()
        self._publisher.commit()
        ended = self._clock.monotonic()
        self._facts.committed(state, [message.topic for message in self._sent], ended - began)
        self._facts.visible(self._sent, [ended - decided for decided in self._decided])
        return came.CommitEnded(ended, ended - began)

    def _stamp(self) -> int:
        """Return PostgreSQL's time (ms): this machine's clock may be days off, and no broker takes
        a record from the future.
        """
        return round((self._ahead + self._clock.monotonic()) * 1000)

    def _drop_handle(self, state: Relay, asked: do.DropHandle) -> None:
        self._publisher.drop()
        self._facts.dropped(state, asked.reason)

    def _rest(self, _: Relay, __: do.Rest) -> None:
        """Nothing: whoever drives the relay rests."""


_DO: Final[dict[type[Any], Callable[[RelayExecutor, Relay, Any], came.Answer | None]]] = {
    do.TryLock: RelayExecutor._try_lock,
    do.TerminateHolder: RelayExecutor._terminate_holder,
    do.CloseSession: RelayExecutor._close_session,
    do.IdentifyStores: RelayExecutor._read_standing,
    do.Fence: RelayExecutor._fence,
    do.ReadBounds: RelayExecutor._read_bounds,
    do.ReadManifests: RelayExecutor._read_manifests,
    do.Compare: RelayExecutor._compare,
    do.Recover: RelayExecutor._recover,
    do.StoreHalt: RelayExecutor._store_halt,
    do.SaveProgress: RelayExecutor._save_progress,
    do.ReadCommits: RelayExecutor._read_commits,
    do.Hold: RelayExecutor._hold,
    do.ReadHeld: RelayExecutor._read_held,
    do.Postpone: RelayExecutor._postpone,
    do.MarkReleased: RelayExecutor._mark_released,
    do.Begin: RelayExecutor._begin,
    do.Publish: RelayExecutor._publish,
    do.PublishManifest: RelayExecutor._publish_manifest,
    do.Commit: RelayExecutor._commit,
    do.DropHandle: RelayExecutor._drop_handle,
    do.Rest: RelayExecutor._rest,
}

_AFTER: Final[dict[type[Any], str]] = {
    do.TryLock: "relay.after_lock",
    do.IdentifyStores: "relay.after_verify",
    do.Fence: "relay.after_fence",
    do.ReadBounds: "relay.after_watermark",
    do.ReadManifests: "relay.after_replay",
    do.Recover: "relay.after_history_chunk",
    do.ReadCommits: "relay.after_select",
    do.Hold: "relay.after_hold",
    do.ReadHeld: "relay.after_held_select",
    do.Postpone: "relay.after_postpone",
    do.MarkReleased: "relay.after_release_mark",
    do.Begin: "relay.after_begin",
    do.Publish: "relay.after_data_flush",
    do.PublishManifest: "relay.after_manifest",
    do.Commit: "relay.after_commit",
    do.SaveProgress: "relay.after_cursor",
}
"""Where a test may make the process die."""
