"""Reads from the data topics what a fence has left open, and which records consumers see.

Call it only when the shard's older producers are fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from datetime import UTC, datetime
from threading import Event
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from outbox.clock import Clock
from outbox.errors import InvalidMessageId, KafkaForbidden, KafkaUnavailable
from outbox.kafka.batch_scan import all_of, read_to_ends
from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.message_id import message_id_bytes, parse_message_id
from outbox.messages.record import HEAL, MESSAGE_ID
from outbox.reconciliation.log import LogEnd, Offsets, Partition, TopicFacts
from outbox.relay.doubt import Doubt, SettledRecords
from outbox.relay.trimmed_topic import TrimmedTopic

PATIENCE_SECONDS: Final = 2.0
"""Longer than transactions of other shards usually take."""
POLL_SECONDS: Final = 0.05
NOTICED_MS: Final = 2 * 3_600_000
"""Longer than a Kafka client may take to notice that a topic has more partitions."""
READ_UNCOMMITTED: Final = {"isolation.level": "read_uncommitted"}
FORBIDDEN_WORDS: Final = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED).str()

_PAUSE: Final = Event()
_T = TypeVar("_T")


class _Identified(NamedTuple):
    """A record, whatever became of its transaction."""

    offset: int
    heals: bytes | None
    message_id: bytes | None


class _Attempt(NamedTuple):
    """A record of a message, whatever became of its transaction."""

    message_id: bytes
    keyed: bool


class _Fate(NamedTuple):
    """What is open of the shard in a partition."""

    partition: Partition
    hangs: bool
    hidden: bool
    """Records of the next messages lie behind an open transaction."""


class KafkaUnseenRecords:
    """The UnseenRecords of one cluster; all shards of a process share it."""

    def __init__(
        self, facts: KafkaLogReader, consumer_config: Mapping[str, Any], clock: Clock
    ) -> None:
        self._facts = facts
        self._config = dict(consumer_config)
        self._clock = clock

    def read(self, doubt: Doubt, *, patient: bool) -> SettledRecords:
        """Return what is open of the shard, or what consumers see; see UnseenRecords."""
        try:
            return self._read(doubt, patient=patient)
        except KafkaException as error:
            raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error

    def _read(self, doubt: Doubt, *, patient: bool) -> SettledRecords:
        partitions = self._facts.partitions(doubt.topics | doubt.next_topics)
        known = self._facts.offsets(partitions, LogEnd.HIGH_WATERMARK)
        ends = known.offsets
        self._require_leaders(doubt, known)
        behind = self._behind(ends, PATIENCE_SECONDS if patient else 0.0)
        fates = [
            self._fate(p, at, ends[p] if patient else at + 1, doubt)
            for p, at in sorted(behind.items())
        ]
        hanging = tuple(fate.partition for fate in fates if fate.hangs)
        starts = None if behind or known.errors else self._starts(doubt, ends)
        if starts is None:
            return SettledRecords(hanging, None, doubtful=any(fate.hidden for fate in fates))
        seen = self._visible(doubt, starts, ends)
        absent = doubt.listed.keys() - seen
        if not absent:
            return SettledRecords((), seen)
        return SettledRecords((), seen, self._unprovable(doubt, absent, starts, ends) & absent)

    def _require_leaders(self, doubt: Doubt, known: Offsets) -> None:
        """Raise KafkaUnavailable while a partition of the next messages has no leader."""
        for partition, error in known.errors.items():
            if partition.topic in doubt.next_topics and error != FORBIDDEN_WORDS:
                raise KafkaUnavailable(f"Kafka: {error}")

    def _behind(self, ends: Mapping[Partition, int], patience: float) -> dict[Partition, int]:
        """Return the last stable offset of each partition that stays below its end."""
        deadline = self._clock.monotonic() + patience
        waiting: Collection[Partition] = ends.keys()
        while True:
            stable = self._facts.offsets(waiting, LogEnd.LAST_STABLE)
            if stable.errors:
                raise KafkaUnavailable(f"Kafka: {next(iter(stable.errors.values()))}")
            behind = {p: at for p, at in stable.offsets.items() if at < ends[p]}
            if not behind or self._clock.monotonic() >= deadline:
                return behind
            waiting = behind.keys()
            _PAUSE.wait(POLL_SECONDS)

    def _fate(self, partition: Partition, stable: int, end: int, doubt: Doubt) -> _Fate:
        """Return whether a transaction of the shard is open between two offsets.

        The oldest open one begins at the last stable offset. Records of the next messages behind
        it may be open, too; a later record that ends them shows that this was tried. While the
        shard publishes, only the oldest one is looked at.
        """
        with closing(Consumer({**self._config, **READ_UNCOMMITTED})) as consumer:
            consumer.assign([TopicPartition(*partition, stable)])
            records = list(read_to_ends(consumer, {partition: end}, _identified))
        first = min(records, default=None)
        ours = [r for r in records if r.heals == doubt.name or r.message_id in doubt.next_ids]
        listed = first is not None and first.offset == stable and first.message_id in doubt.listed
        hidden = bool(ours)
        hangs = listed or (hidden and (ours[0].offset == stable or ours[-1].heals is None))
        return _Fate(partition, hangs, hidden)

    def _unprovable(
        self,
        doubt: Doubt,
        absent: Collection[bytes],
        starts: Mapping[Partition, int],
        ends: Mapping[Partition, int],
    ) -> frozenset[bytes]:
        """Return messages whose record may be gone although consumers have seen it.

        A topic that was deleted proves nothing, nor does one that was created again: an
        acknowledged record is not in its log at all. A log without compaction loses its oldest
        records first. So nothing of a batch is gone from a partition with an older record, and a
        key names its partition. Where the brokers' time is in the records, a late clock hides those
        of a batch that is looked for by its time. An aborted record that is still there proves that
        no later one of its message is gone.
        """
        known = self._whole_topics({p.topic for p in starts})
        whole = known.keys() - _cut_off(doubt, ends)
        stamped = {topic for topic in whole if known[topic].stamps and doubt.is_timed}
        doubtful = frozenset(i for i, sent in doubt.listed.items() if sent.topic not in whole)
        begins = all_of(self._facts.offsets(starts.keys(), LogEnd.START)) if starts else {}
        trimmed = {p for p, at in starts.items() if p.topic in whole and 0 < begins[p] >= at}
        topics = self._trimmed_topics(doubt, trimmed, begins, ends)
        expired = {
            each
            for each, sent in doubt.listed.items()
            if sent.topic in stamped
            or (sent.topic in topics and topics[sent.topic].may_have_lost(sent))
        }
        read = {doubt.listed[each].topic for each in absent}
        places = {p: max(at, begins[p]) for p, at in starts.items() if p.topic in read}
        attempts = self._values(READ_UNCOMMITTED, places, ends, _attempt)
        expired -= {each.message_id for each in attempts if each.keyed}
        replaced = doubt.acknowledged - {each.message_id for each in attempts}
        return doubtful | expired | replaced

    def _trimmed_topics(
        self,
        doubt: Doubt,
        trimmed: Collection[Partition],
        begins: Mapping[Partition, int],
        ends: Mapping[Partition, int],
    ) -> dict[str, TrimmedTopic]:
        """Return the topics of these partitions.

        A partition with a record from long before the batch was known when the batch was sent.
        """
        topics = {p.topic for p in trimmed}
        asked = [p for p in begins if p.topic in topics]
        times = [ms for ms in (doubt.last_since_ms, doubt.since_ms) if ms is not None]
        long_ago = max(0, min(times, default=0) - NOTICED_MS)
        later = self._facts.offsets_since(asked, datetime.fromtimestamp(long_ago / 1000, UTC))
        old = {p for p in asked if later.offsets.get(p, ends[p]) > begins[p]} - later.errors.keys()
        return {
            topic: TrimmedTopic(
                partitions=sum(p.topic == topic for p in ends),
                least=max((p.number + 1 for p in old if p.topic == topic), default=0),
                trimmed=frozenset(p.number for p in trimmed if p.topic == topic),
            )
            for topic in topics
        }

    def _whole_topics(self, topics: Collection[str]) -> dict[str, TopicFacts]:
        """Return those of the topics that exist and are not compacted."""
        described = self._facts.describe(topics) if topics else {}
        return {
            topic: facts
            for topic, facts in described.items()
            if isinstance(facts, TopicFacts) and not facts.compacts
        }

    def _visible(
        self, doubt: Doubt, starts: Mapping[Partition, int], ends: Mapping[Partition, int]
    ) -> frozenset[bytes]:
        """Return which of the listed messages a read_committed consumer reads.

        A manifest may say where records were that are gone by now.
        """
        if not doubt.listed:
            return frozenset()
        begins = all_of(self._facts.offsets(starts.keys(), LogEnd.START)) if starts else {}
        places = {p: max(at, begins[p]) for p, at in starts.items()}
        try:
            return self._values({}, places, ends, _message_id)
        except KafkaForbidden:
            return frozenset(doubt.listed)

    def _values(
        self,
        config: Mapping[str, Any],
        starts: Mapping[Partition, int],
        ends: Mapping[Partition, int],
        read: Callable[[Message], _T | None],
    ) -> frozenset[_T]:
        """Return what is read from the records in these ranges. Raises KafkaException."""
        unread = {p: ends[p] for p, start in starts.items() if start < ends[p]}
        if not unread:
            return frozenset()
        with closing(Consumer({**self._config, **config})) as consumer:
            consumer.assign([TopicPartition(*each, starts[each]) for each in unread])
            return frozenset(read_to_ends(consumer, unread, read))

    def _starts(self, doubt: Doubt, ends: Mapping[Partition, int]) -> dict[Partition, int] | None:
        """Return where the listed batches begin: by their offset runs, or by their time.

        None: a partition does not say.
        """
        touched = [p for p in ends if p.topic in doubt.topics]
        starts: dict[Partition, int] = {}
        for run in doubt.runs:
            place = Partition(run.topic, run.partition)
            if run.topic in doubt.topics and run.end <= ends.get(place, 0):
                starts[place] = min(run.first, starts.get(place, run.first))
        unplaced = [p for p in touched if p not in starts]
        for since_ms, places in ((doubt.last_since_ms, unplaced), (doubt.since_ms, touched)):
            if since_ms is not None:
                at = datetime.fromtimestamp(max(0, since_ms) / 1000, UTC)
                later = self._facts.offsets_since(places, at)
                if later.errors:
                    return None
                for place in places:
                    first = later.offsets.get(place, ends[place])
                    starts[place] = min(first, starts.get(place, first))
        return starts


def _cut_off(doubt: Doubt, ends: Mapping[Partition, int]) -> frozenset[str]:
    """Return the topics with a log that contained a batch and ends before it now."""
    return frozenset(
        run.topic
        for run in doubt.runs
        if ends.get(Partition(run.topic, run.partition), 0) < run.end
    )


def _identified(message: Message) -> _Identified:
    headers: dict[str, Any] = dict(message.headers() or ())
    return _Identified(message.offset() or 0, headers.get(HEAL), _message_id(message))


def _attempt(message: Message) -> _Attempt | None:
    """Return whose record it is; without a key each attempt may take any partition."""
    message_id = _message_id(message)
    return None if message_id is None else _Attempt(message_id, message.key() is not None)


def _message_id(message: Message) -> bytes | None:
    headers: dict[str, Any] = dict(message.headers() or ())
    try:
        return message_id_bytes(*parse_message_id(bytes(headers[MESSAGE_ID]).decode()))
    except (KeyError, ValueError, TypeError, InvalidMessageId):
        return None
