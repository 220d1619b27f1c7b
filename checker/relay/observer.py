"""The relay's metrics, and one log line for each change of state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from checker.relay.send_spans import SendSpans
from outbox.clock import Clock
from outbox.errors import UnsafeServer
from outbox.messages.message_id import message_id_text
from outbox.messages.record import Committed
from outbox.relay.protocol.answers import DeliveryReport
from outbox.relay.protocol.state import Failure, Phase, Refusal, Relay
from outbox.telemetry.events import Event, get_logger, trace_facts
from outbox.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans

_DEPENDENCY: Final = {
    Failure.DATABASE: "postgresql",
    Failure.KAFKA: "kafka",
    Failure.STUCK: "kafka",
}
_AFTER_A_FENCE: Final = (
    "a copy of this database publishes to the same Kafka: stop its checkers, then see"
    " docs/runbooks.md, A copy of the database"
)
_AFTER_A_RESTORE: Final = "docs/runbooks.md, What a restore has lost"
_ORDERLY: Final = frozenset({"stopped", "halted"})


class RelayObserver:
    """Counts and logs for one shard; the metrics are shared by all of them."""

    def __init__(self, metrics: Metrics, clock: Clock, spans: Spans | None = None) -> None:
        self._metrics = metrics
        self._spans = SendSpans(spans, clock) if spans else None
        self._clock = clock
        self._log = get_logger()
        self._fencing_since: float | None = None
        self._logged: tuple[Event, Failure] | None = None
        """The last failure; it is logged once until the relay runs again."""
        self._cause: dict[str, str] = {}
        """Which row is missing, for the log of the halt that follows."""

    def moved(self, was: Relay, now: Relay) -> None:
        """Note a change of phase or of the reason to halt."""
        if was.halt != now.halt:
            self._halted(was, now)
        if was.phase is now.phase:
            return
        if now.phase is Phase.FENCE:
            self._fencing_since = self._clock.monotonic()
        elif now.phase is Phase.RUN:
            self._running(now)

    def failed(self, state: Relay, failure: Failure, error: Exception) -> None:
        """Note that a store failed, or that another relay took over; once until the relay runs."""
        if failure is Failure.ROW_MISSING:
            self._cause = {"error": str(error)}
            return
        dependency = _DEPENDENCY.get(failure)
        event = Event.DEPENDENCY_LOST if dependency else Event.RELAY_FENCED
        if isinstance(error, UnsafeServer):
            event = Event.SERVER_UNSAFE
        if self._logged != (event, failure):
            self._logged = (event, failure)
            self._log.warning(
                event,
                dependency=dependency,
                failure=failure.value,
                shard=state.shard,
                phase=state.phase.value,
                error=str(error) or type(error).__name__,
            )

    def refused(self, state: Relay, message: Committed, error: str) -> None:
        """Note a record that Kafka refuses: it is tried alone, and then held with its scope."""
        self._metrics["publish_errors_total"].labels(topic=message.topic, error=error).inc()
        if self._spans is not None:
            self._spans.refused(message, error)
        self._log.error(
            Event.PUBLISH_FAILED,
            shard=state.shard,
            message_id=message_id_text(message.half_id, message.nonce),
            producer_group=message.producer_group,
            topic=message.topic,
            error=error,
            **trace_facts(message.traceparent),
        )

    def held(self, state: Relay, message_ids: Sequence[bytes], refusal: Refusal | None) -> None:
        """Note held messages; those that only wait behind another are not logged."""
        if refusal is not None:
            self._log.error(
                Event.RECORD_HELD,
                shard=state.shard,
                held=[*map(_text, message_ids)],
                scope=refusal.refused.value,
                error=refusal.error,
            )

    def dropped(self, state: Relay, reason: str, failure: str | None) -> None:
        """Note that a producer was dropped; ``failure`` is what its last batch failed with."""
        if reason in _ORDERLY:
            return
        self._metrics["relay_drops_total"].labels(reason=reason).inc()
        if reason not in tuple(Failure):
            self._log.warning(
                Event.PRODUCER_DROPPED,
                shard=state.shard,
                reason=reason,
                failures=state.failures,
                **({"error": failure} if failure else {}),
            )

    def committed(self, state: Relay, sent: Sequence[Committed], seconds: float) -> None:
        """Note a committed batch by the topics and groups of its records."""
        self._metrics["relay_commit_seconds"].observe(seconds)
        self._metrics["relay_batch_records"].observe(len(sent))
        kinds = Counter((message.topic, message.producer_group) for message in sent)
        for kind, records in kinds.items():
            self._metrics["publish_total"].labels(*kind).inc(records)
        if state.batch is not None:
            self._log.debug(
                Event.HALF_PUBLISHED,
                shard=state.shard,
                batch_no=state.batch.batch_no,
                records=len(sent),
            )

    def visible(self, sent: Sequence[Committed], latencies: Sequence[float]) -> None:
        """Note the time from decision to acknowledgement of a batch's first and last message."""
        ends = (sent[0], sent[-1])[: len(sent)] if sent else ()
        for message, seconds in zip(ends, latencies, strict=False):
            latency = self._metrics["publish_latency_seconds"].labels(topic=message.topic)
            latency.observe(max(0.0, seconds))

    def sent(
        self, messages: Sequence[Committed], delivery: DeliveryReport | None, seconds: float
    ) -> None:
        """Note published records, ``seconds`` after their transaction began."""
        if self._spans is not None and delivery is not None:
            self._spans.sent(messages, delivery, seconds)

    def recovered(self, state: Relay, ids: int, *, rolled_back: int) -> None:
        """Note ids that Kafka had and PostgreSQL had lost, or rolled back in the meantime."""
        self._metrics["relay_history_ids_total"].inc(ids)
        self._log.error(
            Event.HISTORY_RECOVERED,
            shard=state.shard,
            message_ids=ids,
            rolled_back=rolled_back,
            next=_AFTER_A_FENCE if self._was_fenced() else _AFTER_A_RESTORE,
        )

    def _was_fenced(self) -> bool:
        """Return whether another relay took over since the last batch of this one.

        One of the same database would have stored what it published.
        """
        return self._logged is not None and self._logged[0] is Event.RELAY_FENCED

    def _halted(self, was: Relay, now: Relay) -> None:
        gauge, shard = self._metrics["relay_halted"], str(now.shard)
        if was.halt is not None:
            gauge.labels(shard=shard, reason=was.halt.value).set(0)
        if now.halt is not None:
            gauge.labels(shard=shard, reason=now.halt.value).set(1)
            cause, self._cause = self._cause, {}
            self._log.error(Event.RELAY_HALTED, shard=now.shard, halt=now.halt.value, **cause)

    def _running(self, now: Relay) -> None:
        if self._fencing_since is not None:
            elapsed = self._clock.monotonic() - self._fencing_since
            self._metrics["relay_replay_seconds"].observe(elapsed)
        logged, self._logged = self._logged, None
        if logged is not None and (dependency := _DEPENDENCY.get(logged[1])):
            self._log.info(Event.DEPENDENCY_BACK, dependency=dependency, shard=now.shard)


def _text(message_id: bytes) -> str:
    return str(UUID(bytes=message_id))
