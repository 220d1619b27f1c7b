"""Resolves a halted shard as the operator decided, without loss or duplicate."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from cli.invocation.exit_codes import CommandFailed, ExitCode
from outbox.errors import IdsBehind
from outbox.kafka.client_config import (
    admin_client,
    consumer_config,
    producer_config,
)
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.kafka.publisher import KafkaPublisher
from outbox.kafka.topic_scan import KafkaTopicScan, Seen
from outbox.messages.manifest import START
from outbox.messages.message_id import SHARDS, split_message_id
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.operator_view import OperatorView
from outbox.postgres.operators.shard_admin import resume_shard
from outbox.postgres.relay.commit_log import (
    PostgresCommitLog,
    mark_published,
    recover_published,
)
from outbox.postgres.sessions.availability import unavailable_on
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.verified_sessions import refuse_ids_behind
from outbox.relay.halt_resolution import RESOLUTIONS, HaltResolution
from outbox.relay.protocol.state import (
    Cursor,
    Found,
    HaltReason,
    Identity,
    Progress,
    require,
)
from outbox.settings.catalogue import Settings

IDS_AT_ONCE: Final = 2_000
BEFORE_ALL_BATCHES: Final = -1
"""Lower than any batch number."""
_CURSOR_HOLDS: Final = {HaltReason.PROGRESS_LOST, HaltReason.REPLAY_STUCK}
"""PostgreSQL and Kafka agree up to the cursor: only newer batches are learned."""
_UNSTARTED: Final = Cursor(START, 0, 0, 0, 0)


def allowed(halt: HaltReason | None, way: HaltResolution) -> HaltReason:
    """Return the halt reason. Raises CommandFailed if it does not allow this resolution."""
    if halt is None:
        raise CommandFailed("the shard is not halted: see `outbox shard list`", ExitCode.CONFLICT)
    if way not in RESOLUTIONS[halt]:
        ways = " or ".join(f"--{each}" for each in RESOLUTIONS[halt])
        raise CommandFailed(
            f"halted for {halt}: --{way} does not resolve it ({ways} does)", ExitCode.CONFLICT
        )
    return halt


@dataclass(frozen=True, slots=True)
class ShardResolution:
    """Resolves one shard; ``progress_topic`` differs only in tests."""

    settings: Settings
    shard: int
    progress_topic: str = PROGRESS_TOPIC

    def resolve(self, way: HaltResolution, action: OperatorAction) -> dict[str, Any]:
        """Apply the decision; return where the shard continues. Raises CommandFailed."""
        try:
            return self._resolve(way, action)
        except IdsBehind as error:
            raise CommandFailed(str(error), ExitCode.CONFLICT) from None

    def _resolve(self, way: HaltResolution, action: OperatorAction) -> dict[str, Any]:
        url = self.settings.required_database_url()
        log = PostgresCommitLog(url, self.shard, batch_max=1, owner="cli")
        with (
            unavailable_on(psycopg.Error),
            closing(log),
            connect(url, "cli") as session,
        ):
            refuse_ids_behind(session)
            progress = log.progress()
            halt = allowed(progress.halt if progress else None, way)
            cursor, identity, learned = self._decide(way, halt, require(progress), log, session)
            resume_shard(session, self.shard, halt, way, cursor, identity, action)
        return {
            "shard": self.shard,
            "halt_reason": halt,
            "way": way,
            "learned": learned,
            "manifest_offset": cursor and cursor.manifest_offset,
        }

    def _decide(
        self,
        way: HaltResolution,
        halt: HaltReason,
        was: Progress,
        log: PostgresCommitLog,
        session: Connection,
    ) -> tuple[Cursor | None, Identity | None, int]:
        """Return where the shard continues, and how many ids PostgreSQL learned for that."""
        if halt is HaltReason.ROW_MISSING:
            return None, None, 0
        identity = self._identity(log)
        own = log.installation()[0] if way is HaltResolution.ACCEPT else None
        if was.cursor is None and way is HaltResolution.ACCEPT:
            first = _Manifests(self._progress_log(), self.shard, _UNSTARTED, own)
            deque(first.listed(*self._progress_log().bounds()), maxlen=0)
            return None, None, 0
        cursor = was.cursor or _UNSTARTED
        later = cursor._replace(gen=cursor.gen + 1)
        if halt is HaltReason.DATABASE_CHANGED:
            return later, identity, 0
        self._fence(log)
        reader = self._progress_log()
        start, end = reader.bounds()
        manifests = _Manifests(reader, self.shard, later, own)
        listed = manifests.listed(start, end)
        if way is HaltResolution.ACCEPT_DUPLICATES:
            deque(listed, maxlen=0)
            return manifests.last._replace(manifest_offset=end), identity, 0
        is_whole = way is HaltResolution.SCAN and halt not in _CURSOR_HOLDS
        newer_than = BEFORE_ALL_BATCHES if is_whole else cursor.batch_no
        known = was.cursor and was.cursor.batch_no
        learning = _Learning(session, self.shard, end, newer_than, known)
        learned, highest = learning.learn(chain(listed, self._scan()))
        if way is HaltResolution.ACCEPT and manifests.any:
            return (
                later._replace(manifest_offset=manifests.following(start, end)),
                identity,
                learned,
            )
        last = manifests.last._replace(batch_no=max(highest, manifests.last.batch_no))
        offset = start if way is HaltResolution.ACCEPT else end
        return last._replace(manifest_offset=offset), identity, learned

    def _identity(self, log: PostgresCommitLog) -> Identity:
        cluster = self._progress_log().cluster()
        if cluster.partitions < SHARDS:
            wrong = f"{self.progress_topic} has {cluster.partitions} partitions instead of {SHARDS}"
            raise CommandFailed(f"{wrong}: this cannot be accepted", ExitCode.CONFLICT)
        return Identity(cluster.cluster_id, cluster.topic_id, log.installation()[1])

    def _fence(self, log: PostgresCommitLog) -> None:
        """Fence every older producer of the shard before anything is read.

        No relay works on a halted shard, but a frozen process may still have an open transaction.
        After ``init_transactions`` that transaction is complete, its markers are written, and
        frames of older epochs are refused (KIP-98). Only then are the logs complete.
        """
        stored = log.progress()
        config = partial(producer_config, self._servers, self.settings.kafka_config)
        publisher = KafkaPublisher(config, self.shard, self.progress_topic)
        number = stored.cursor.number if stored and stored.cursor else 0
        publisher.fence(log.installation()[0], number)
        publisher.drop()

    def _scan(self) -> Iterator[Seen]:
        scan = KafkaTopicScan(self._servers, self.settings.kafka_config)
        with OperatorView(self.settings.required_database_url()) as view:
            topics = view.topics()
        yield from scan.of_shard(topics, self.shard)

    def _progress_log(self) -> KafkaProgressLog:
        admin = admin_client(self._servers, self.settings.kafka_config)
        return KafkaProgressLog(admin, self._consumer, self.shard, self.progress_topic)

    @property
    def _servers(self) -> str:
        return self.settings.required_bootstrap_servers()

    @property
    def _consumer(self) -> dict[str, Any]:
        return consumer_config(self._servers, self.settings.kafka_config)


class _Manifests:
    """Reads the shard's manifests once and keeps the last of them.

    With ``own``, a manifest of any other installation is refused. Otherwise a renewed copy would
    continue in the log of its original, halt it, and publish to its topics a second time.
    """

    def __init__(
        self, reader: KafkaProgressLog, shard: int, cursor: Cursor, own: UUID | None
    ) -> None:
        self._reader = reader
        self._shard = shard
        self._own = own
        self._known = self.last = cursor
        self._next: int | None = None
        """The offset of the first manifest after the known cursor."""
        self._differs = False
        """The manifest of the known cursor's batch is another one."""
        self.any = False

    def following(self, start: int, end: int) -> int:
        """Return where the manifests after the known cursor begin, as in a mirrored log.

        If the log has another manifest of that batch, it is read from its start, and halts.
        """
        if self._differs:
            return start
        return end if self._next is None else self._next

    def listed(self, start: int, end: int) -> Iterator[Seen]:
        """Yield the messages that the manifests in [start, end) name as published."""
        at, reached = start, start >= end
        while not reached:
            found, reached = self._reader.read(at, end)
            if not found and not reached:
                raise CommandFailed(
                    "an open transaction of another producer blocks the progress topic",
                    ExitCode.UNREACHABLE,
                )
            for each in found:
                yield from self._pass(each)
                at = each.offset + 1

    def _pass(self, found: Found) -> Iterator[Seen]:
        self.any, manifest = True, found.manifest
        if manifest is not None and self._own not in (None, manifest.installation):
            foreign = f"the topic belongs to the installation {manifest.installation}"
            raise CommandFailed(f"{foreign}: use a separate Kafka cluster", ExitCode.CONFLICT)
        if manifest is None or manifest.shard != self._shard:
            return
        known = self._known
        self._differs |= manifest.batch_no == known.batch_no and found.crc != known.crc
        if manifest.batch_no > known.batch_no and self._next is None:
            self._next = found.offset
        if manifest.batch_no >= self.last.batch_no:
            gen = max(self.last.gen, manifest.gen + 1)
            self.last = self.last._replace(batch_no=manifest.batch_no, crc=found.crc, gen=gen)
        for message_id in manifest.published:
            yield Seen(manifest.batch_no, *split_message_id(message_id))


class _Learning(NamedTuple):
    """What PostgreSQL learns of the messages that Kafka has."""

    session: Connection
    shard: int
    end: int
    """of the progress log"""
    newer_than: int
    """Older batches are left out."""
    known: int | None
    """The last batch that PostgreSQL knew, if it knew one.

    What a repair repeats is in a batch up to it, because a repair is ordered after that is known.
    """

    def learn(self, seen: Iterable[Seen]) -> tuple[int, int]:
        """Store which ids Kafka has; return their number and the highest batch number."""
        learned, highest, messages = 0, 0, iter(seen)
        while some := list(islice(messages, IDS_AT_ONCE)):
            highest = max(highest, *(each.batch_no for each in some), 0)
            ids = {each[1:] for each in some if each.batch_no > self.newer_than}
            if ids:
                with self.session.transaction():
                    recover_published(self.session, self.shard, max(0, self.end - 1), sorted(ids))
                learned += len(ids)
            if self.known is not None:
                newer = [each for each in some if each.batch_no > self.known]
                mark_published(self.session, newer, {})
        return learned, highest
