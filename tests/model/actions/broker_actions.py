"""The relay's actions on Kafka: what may come of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from outbox.messages.manifest import PUBLISHED
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.publication import CLEAN_COMMIT_SECONDS, PROGRESS_SECONDS
from outbox.relay.protocol.state import Failure, Found, Refusal, Refused, require
from outbox.relay.protocol.takeover import STUCK_SECONDS
from tests.model.relays import ReadEnd
from tests.model.scene import (
    LONG_REPLAY,
    UNSENT,
    AtBroker,
    Fault,
    Outcome,
    named,
    numbers,
)
from tests.model.stores.kafka import (
    Broker,
    Record,
    abort,
    end_transaction,
    found,
    produce,
    produce_manifest,
)


def fence(scene: AtBroker, _: actions.Fence) -> Iterator[Outcome]:
    """Move the epoch on; what was open is aborted. Kafka may not be able to do so in time."""
    broker, number = abort(scene.broker, scene.number), scene.number
    if not scene.rules.fence_moves_epoch:
        broker = broker.with_id(number, frame=scene.broker.ids[number].frame, old_frame=False)
    if scene.rules.fence_next_id:
        for later in range(number + 1, len(broker.ids)):
            broker = abort(broker, later)
    yield Outcome("Fence", answers.Fenced(), broker=broker, owns=True)
    if number + 1 < len(broker.ids):
        late = answers.Failed(Failure.STUCK)
        yield Outcome("Fence: not in time", late, cost=Fault.STUCK)


def read_end(scene: AtBroker, asked: ReadEnd) -> Iterator[Outcome]:
    """Answer with the high watermark as it is by now."""
    end = len(scene.broker.progress)
    yield Outcome(f"ReadBounds: the log ends at {end}", answers.Bounds(asked.row, 0, end))


def read_manifests(scene: AtBroker, asked: actions.ReadManifests) -> Iterator[Outcome]:
    """Read all that is stable; a transaction in the way goes when its time is over."""
    broker = scene.broker
    if broker.stable >= asked.end or _stable_manifests(broker, asked):
        yield _manifests_read(scene, asked, broker)
        return
    late = (number for number, each in enumerate(broker.ids) if each.open)
    later = reduce(abort, late, broker)
    yield _manifests_read(scene, asked, later)._replace(broker=later, owns=False)
    yield Outcome("ReadManifests: nothing yet", answers.ManifestsRead((), False))
    yield Outcome("ReadManifests: stuck", answers.ManifestsRead((), False, STUCK_SECONDS))


def _stable_manifests(broker: Broker, asked: actions.ReadManifests) -> list[Found]:
    end = min(asked.end, broker.stable)
    return [seen for seen in broker.manifests if asked.first <= seen.offset < end]


def _manifests_read(scene: AtBroker, asked: actions.ReadManifests, broker: Broker) -> Outcome:
    seen = _stable_manifests(broker, asked)
    answer = answers.ManifestsRead(tuple(seen), broker.stable >= asked.end)
    reached = (LONG_REPLAY,) if len(seen) > 1 else ()
    text = f"ReadManifests: batches {[require(found.manifest).batch_no for found in seen]}"
    return Outcome(text, answer, reached=reached)


def publish(scene: AtBroker, asked: actions.Publish) -> Iterator[Outcome]:
    """Send records and manifest; a report may be missing though the record is there."""
    if not scene.owner:
        yield _fenced(scene, asked)
        if not scene.rules.prove_the_handle:
            yield from _unsent(scene, asked)
        return
    records, offset = _records_of(asked), len(scene.broker.progress)
    good, crc = len(records), found(offset, asked.batch).crc
    text = f"Publish: {named(tuple(record.message for record in records))}"
    told = f"{text}, batch {asked.batch.batch_no} at {offset}"
    sent = produce(scene.broker, scene.number, records)
    whole = produce_manifest(sent, scene.number, asked.batch)
    yield Outcome(told, answers.DeliveryReport(good, offset=offset, crc=crc), broker=whole)
    unknown = answers.DeliveryReport(good, crc=crc)
    yield Outcome(f"{told}, report lost", unknown, broker=whole, cost=Fault.CRASH)
    yield from (_apart if asked.apart else _together)(scene, asked, text)
    yield from _unsent(scene, asked)


def _unsent(scene: AtBroker, asked: actions.Publish) -> Iterator[Outcome]:
    """Refuse a record whose topic takes none: only a record is sent that proves the handle."""
    proved = None
    if scene.owner:
        proved = produce_manifest(scene.broker, scene.number, asked.batch)
    for place, message in enumerate(asked.batch.published):
        refusal = Refusal(place, "takes no records", Refused.TOPIC, named=True)
        text = f"Publish: {named(numbers((message,)))} is refused unsent"
        answer = answers.DeliveryReport(0, refusal)
        yield Outcome(text, answer, broker=proved, cost=Fault.REFUSE)


def _records_of(asked: actions.Publish) -> tuple[Record, ...]:
    return tuple(
        Record(message, asked.batch.batch_no, index)
        for index, (message_id, status) in enumerate(asked.batch.entries)
        if status == PUBLISHED
        for message in numbers((message_id,))
    )


def _apart(scene: AtBroker, asked: actions.Publish, text: str) -> Iterator[Outcome]:
    """Send no manifest, because a report is missing, or is a refusal."""
    records = _records_of(asked)
    sent, fewer = produce(scene.broker, scene.number, records), len(records) - 1
    if not records:
        return
    missing = answers.DeliveryReport(fewer)
    yield Outcome(f"{text}, a report lost", missing, broker=sent, cost=Fault.CRASH)
    unnamed = Refusal(0, "too large", Refused.RECORD)
    named = (unnamed._replace(place=place, named=True) for place in range(len(records)))
    for refusal in (unnamed, *named):
        refused = answers.DeliveryReport(fewer, refusal)
        yield Outcome(f"{text}, refused", refused, broker=sent, cost=Fault.REFUSE)


def _together(scene: AtBroker, asked: actions.Publish, text: str) -> Iterator[Outcome]:
    """Send the manifest and not every record, or every record and not the manifest."""
    records = _records_of(asked)
    sent = produce(scene.broker, scene.number, records)
    unlisted = answers.DeliveryReport(len(records))
    yield Outcome(f"{text}, no manifest", unlisted, broker=sent, cost=Fault.CRASH)
    fewer = answers.DeliveryReport(len(records) - 1)
    for missing in records:
        rest = tuple(each for each in records if each != missing)
        others = produce(scene.broker, scene.number, rest)
        part = produce_manifest(others, scene.number, asked.batch)
        lost = f"{text} without m{missing.message}"
        for cost in (Fault.CRASH, Fault.REFUSE):
            yield Outcome(lost, fewer, broker=others, cost=cost)
            yield Outcome(f"{lost}, listed", fewer, broker=part, cost=cost, reached=(UNSENT,))


def commit(scene: AtBroker, asked: actions.Commit) -> Iterator[Outcome]:
    """The answer and what Kafka did are two things; a commit that is not clean leaves a frame."""
    if not scene.owner:
        yield _fenced(scene, asked)
        return
    number = scene.number
    done = end_transaction(scene.broker, number)
    for text, at in (("clean, a second has passed", PROGRESS_SECONDS), ("clean", 0.0)):
        yield Outcome(f"Commit: {text}", answers.CommitEnded(at, 0.0), broker=done)
    unknown = answers.Failed(Failure.KAFKA)
    yield Outcome("Commit: done, answer lost", unknown, broker=done, cost=Fault.CRASH)
    if not scene.broker.ids[number].frame:
        waiting, again = (each.with_id(number, frame=True) for each in (scene.broker, done))
        yield Outcome("Commit: error, frame late", unknown, broker=waiting, cost=Fault.FRAME)
        slow = answers.CommitEnded(0.0, CLEAN_COMMIT_SECONDS)
        yield Outcome("Commit: slow, sent twice", slow, broker=again, cost=Fault.FRAME)


def _fenced(scene: AtBroker, action: object) -> Outcome:
    return Outcome(f"{type(action).__name__}: fenced", answers.Failed(Failure.FENCED))
