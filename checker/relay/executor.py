"""Executes the relay's plans on PostgreSQL and Kafka; it decides nothing.

Errors of the two stores are raised unchanged: the loop turns them into the protocol's failures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from checker.relay.observer import RelayObserver
from checker.relay.unlogged_batches import UnloggedBatches
from outbox.clock import Clock
from outbox.failpoints import hit
from outbox.messages.manifest import PUBLISHED, Manifest, crc_of, encode
from outbox.messages.record import Committed, Record, digest_in, record_of
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.answers import THIS_CLOCK
from outbox.relay.protocol.publication import UNDELIVERED
from outbox.relay.protocol.record_hold import STORED_ROW_DAMAGED
from outbox.relay.protocol.state import Identity, Refusal, Refused, Relay

if TYPE_CHECKING:
    from outbox.kafka.progress_log import KafkaProgressLog
    from outbox.kafka.publisher import KafkaPublisher
    from outbox.kafka.ready_topics import ReadyTopics
    from outbox.postgres.relay.commit_log import PostgresCommitLog


class RelayStores(NamedTuple):
    """What the relay of a shard works on."""

    commit_log: PostgresCommitLog
    publisher: KafkaPublisher
    manifests: KafkaProgressLog
    topics: ReadyTopics | None = None
    """None: no topic is looked at before its records are sent."""


class RelayExecutor:
    """The resources of a shard's relay: a session, a producer, the batch that was read last."""

    def __init__(
        self,
        stores: RelayStores,
        clock: Clock,
        observer: RelayObserver,
    ) -> None:
        self._commit_log, self._publisher, self._manifests, self._topics = stores
        self._clock = clock
        self._observer = observer
        self._messages: Sequence[Committed] = ()
        self._redriven: str | None = None
        self._clock_ms = THIS_CLOCK
        """PostgreSQL's time when the batch was read."""
        self._decided: tuple[float, ...] = ()
        """The time of decision of the batch's first and last message, in monotonic seconds."""
        self._sent: list[Committed] = []
        self._delivery: answers.DeliveryReport | None = None
        self._began = 0.0
        """The monotonic time at which the open batch began."""
        self._unlogged = UnloggedBatches()

    def perform(self, state: Relay, plan: tuple[actions.Action, ...]) -> answers.Answer:
        """Execute the plan in order; return the last action's answer. The first error ends it."""
        answer: answers.Answer = answers.Rested()
        for action in plan:
            answer = _DO[type(action)](self, state, action) or answer
            if type(action) in _AFTER:
                hit(_AFTER[type(action)])
        return answer

    def serve(self) -> None:
        """Take what the producer has noted meanwhile; see KafkaPublisher."""
        self._publisher.serve()

    # -- The lock, and the identity of the stores ------------------------------------------------

    def _try_lock(self, _: Relay, __: actions.TryLock) -> answers.Answer:
        if hit("relay.lock") or self._commit_log.try_lock():
            return answers.LockTaken()
        return answers.LockBusy()

    def _close_session(self, _: Relay, __: actions.CloseSession) -> None:
        self._commit_log.close()
        self._unlogged.lost()

    def _identify_stores(self, _: Relay, __: actions.IdentifyStores) -> answers.Answer:
        installation, pg_system_id = self._commit_log.installation()
        cluster = self._manifests.cluster()
        identity = Identity(cluster.cluster_id, cluster.topic_id, pg_system_id)
        progress = self._commit_log.progress()
        return answers.StoresIdentified(installation, identity, cluster.partitions, progress)

    # -- Taking over -----------------------------------------------------------------------------

    def _fence(self, state: Relay, asked: actions.Fence) -> answers.Answer:
        assert state.installation is not None
        self._commit_log.keep_alive()
        self._publisher.fence(state.installation, asked.number, asked.each_within)
        return answers.Fenced()

    def _leave_id(self, _: Relay, asked: actions.LeaveTransactionalId) -> None:
        self._commit_log.leave_transactional_id(asked.gen)

    def _read_bounds(self, _: Relay, __: actions.ReadBounds) -> answers.Answer:
        """Read the row first: while another owner works, the log grows only beyond it."""
        progress = self._commit_log.progress()
        return answers.Bounds(progress, *self._manifests.bounds())

    def _read_manifests(self, _: Relay, asked: actions.ReadManifests) -> answers.Answer:
        self._commit_log.keep_alive()
        began = self._clock.monotonic()
        found, reached = self._manifests.read(asked.first, asked.end)
        return answers.ManifestsRead(found, reached, self._clock.monotonic() - began)

    def _compare(self, _: Relay, asked: actions.Compare) -> answers.Answer:
        return self._commit_log.compare(asked.after, asked.manifest)

    def _recover(self, state: Relay, asked: actions.Recover) -> answers.Answer:
        manifest = asked.manifest
        lost = self._commit_log.recover(manifest, asked.offset, asked.cursor, state.who)
        self._observer.recovered(state, len(manifest.published), rolled_back=lost)
        return answers.Stored()

    def _store_halt(self, _: Relay, asked: actions.StoreHalt) -> None:
        self._commit_log.halt(asked.reason)

    def _save_progress(self, state: Relay, asked: actions.SaveProgress) -> None:
        published = self._unlogged.until(asked.cursor)
        self._commit_log.save(asked.cursor, state.who, published, begins=asked.begins)
        self._unlogged.logged()

    def _mark_released(self, state: Relay, asked: actions.MarkReleased) -> answers.Answer:
        published = self._unlogged.until(asked.cursor)
        self._commit_log.mark_released(asked.manifest, asked.cursor, state.who, published)
        self._unlogged.logged()
        return answers.Stored()

    # -- Publishing ------------------------------------------------------------------------------

    def _read_commits(self, _: Relay, asked: actions.ReadCommits) -> answers.Answer:
        began = self._clock.monotonic()
        commits = self._commit_log.read(asked.after, asked.most)
        self._take(commits.messages, commits.clock_ms)
        self._decided = tuple(began - age for age in commits.ages)
        return replace(commits, at=self._clock.monotonic())

    def _take(
        self, messages: Sequence[Committed], clock_ms: int, redriven: str | None = None
    ) -> None:
        """Keep what was read last: the next batch is made of it."""
        self._messages, self._clock_ms, self._redriven = messages, clock_ms, redriven
        self._sent, self._delivery, self._decided = [], None, ()

    def _hold(self, state: Relay, asked: actions.HoldRecords) -> None:
        self._commit_log.hold(asked.batch, asked.message_ids, asked.refusal)
        self._observer.held(state, asked.message_ids, asked.refusal)

    def _read_held(self, _: Relay, asked: actions.ReadHeld) -> answers.Answer:
        held = self._commit_log.read_held(asked.position, asked.most)
        self._take(held.messages, held.clock_ms, held.redriven)
        return held

    def _postpone(self, _: Relay, asked: actions.Postpone) -> None:
        self._commit_log.postpone(asked.message_id, asked.refusal)

    def _publish(self, state: Relay, asked: actions.Publish) -> answers.Answer:
        self._began = self._clock.monotonic()
        batch, manifest = asked.batch, encode(asked.batch)
        self._unlogged.confirm(batch.batch_no - 1, batch.prev_crc)
        records = self._render(batch)
        delivery = self._send(records, manifest, apart=asked.apart)
        half_ids = [message.half_id for message in self._sent]
        self._delivery = delivery = replace(delivery, crc=crc_of(manifest), half_ids=half_ids)
        if delivery.refused is not None:
            for place in (delivery.refused.place, *delivery.alike):
                self._observer.refused(state, self._sent[place], delivery.refused.error)
        elif batch.entries and delivery.good == len(records):
            self._unlogged.doubt((batch, delivery))
        return delivery

    def _send(
        self, records: Sequence[Record], manifest: bytes, *, apart: bool
    ) -> answers.DeliveryReport:
        """Send a batch, unless the row of a record is damaged, or a topic takes no records.

        Then only an empty record is sent, to the log of the manifests. Its acknowledgement proves
        that no newer producer has published the refused record; the next fence aborts it.
        """
        pairs = enumerate(zip(records, self._sent, strict=True))
        damaged = [n for n, (record, sent) in pairs if digest_in(record) != sent.content_digest]
        refusal = None
        if damaged:
            refusal = Refusal(damaged[0], STORED_ROW_DAMAGED, Refused.RECORD, named=True)
        elif self._topics:
            refusal = self._topics.refusal([record.topic for record in records])
        self._publisher.begin()
        hit("relay.after_begin")
        if refusal is None:
            return self._publisher.publish(records, manifest, self._clock_ms, apart=apart)
        proof = self._publisher.publish((), b"", self._clock_ms)
        if proof.offset == answers.UNKNOWN_OFFSET:
            return proof
        return answers.DeliveryReport(0, refusal, damaged[1:])

    def _render(self, batch: Manifest) -> list[Record]:
        prefix = f"{batch.shard}.{batch.batch_no}."
        pairs = [
            (message, prefix + str(index))
            for index, (message, entry) in enumerate(
                zip(self._messages if batch.entries else (), batch.entries, strict=True)
            )
            if entry.status == PUBLISHED
        ]
        self._sent = [message for message, _ in pairs]
        return [record_of(message, place, self._redriven) for message, place in pairs]

    def _commit(self, state: Relay, _: actions.Commit) -> answers.Answer:
        hit("relay.before_commit")
        began = self._clock.monotonic()
        self._publisher.commit()
        if self._topics:
            self._topics.taken()
        ended = self._clock.monotonic()
        self._observer.committed(state, self._sent, ended - began)
        self._observer.sent(self._sent, self._delivery, ended - self._began)
        self._observer.visible(self._sent, [ended - decided for decided in self._decided])
        return answers.CommitEnded(ended, ended - began)

    def _drop_handle(self, state: Relay, asked: actions.DropHandle) -> None:
        self._publisher.drop()
        failed = self._delivery if asked.reason == UNDELIVERED else None
        self._observer.dropped(state, asked.reason, failed.failure if failed else None)

    def _rest(self, _: Relay, __: actions.Rest) -> None:
        """Do nothing: the driver of the relay rests."""


_DO: Final[dict[type[Any], Callable[[RelayExecutor, Relay, Any], answers.Answer | None]]] = {
    actions.TryLock: RelayExecutor._try_lock,
    actions.CloseSession: RelayExecutor._close_session,
    actions.IdentifyStores: RelayExecutor._identify_stores,
    actions.Fence: RelayExecutor._fence,
    actions.LeaveTransactionalId: RelayExecutor._leave_id,
    actions.ReadBounds: RelayExecutor._read_bounds,
    actions.ReadManifests: RelayExecutor._read_manifests,
    actions.Compare: RelayExecutor._compare,
    actions.Recover: RelayExecutor._recover,
    actions.StoreHalt: RelayExecutor._store_halt,
    actions.SaveProgress: RelayExecutor._save_progress,
    actions.ReadCommits: RelayExecutor._read_commits,
    actions.HoldRecords: RelayExecutor._hold,
    actions.ReadHeld: RelayExecutor._read_held,
    actions.Postpone: RelayExecutor._postpone,
    actions.MarkReleased: RelayExecutor._mark_released,
    actions.Publish: RelayExecutor._publish,
    actions.Commit: RelayExecutor._commit,
    actions.DropHandle: RelayExecutor._drop_handle,
    actions.Rest: RelayExecutor._rest,
}

_AFTER: Final[dict[type[Any], str]] = {
    actions.TryLock: "relay.after_lock",
    actions.IdentifyStores: "relay.after_verify",
    actions.Fence: "relay.after_fence",
    actions.ReadBounds: "relay.after_watermark",
    actions.ReadManifests: "relay.after_replay",
    actions.Recover: "relay.after_history_chunk",
    actions.ReadCommits: "relay.after_select",
    actions.HoldRecords: "relay.after_hold",
    actions.ReadHeld: "relay.after_held_select",
    actions.Postpone: "relay.after_postpone",
    actions.MarkReleased: "relay.after_release_mark",
    actions.Publish: "relay.after_manifest",
    actions.Commit: "relay.after_commit",
    actions.SaveProgress: "relay.after_cursor",
}
"""The failpoint after each action."""
