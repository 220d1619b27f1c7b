"""Writes both stores as the service does: real prepares and ends, and Kafka transactions that close
with a manifest. Faults are planted by altering what a batch publishes, or beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Event
from time import time
from typing import Any
from uuid import UUID

import psycopg
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec import structs

from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.manifest import START, Entry, Kind, Manifest, Position, crc_of, encode
from outbox.messages.message import DecidedBy, End, HalfMessage, Message, Prepared, Resolution
from outbox.messages.message_id import HalfId
from outbox.messages.record import Record
from outbox.postgres.messages.half_rows import read_whole_halves
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import make_pool
from outbox.reconciliation.log import LogEnd, Partition
from spark.cut.cut_plan import open_transactions
from tests.fixtures_messages import make_group, make_message, store_group, store_topic
from tests.fixtures_records import render

Alter = Callable[[Record], Iterable[Record]]
"""Maps a record to what is published: itself, an altered one, several or none."""


def as_it_is(record: Record) -> Iterable[Record]:
    """Publish the record unaltered."""
    return (record,)


@dataclass
class ShardState:
    """The state of a shard's manifests."""

    position: Position = START
    batch_no: int = 0
    crc: int = 0


@dataclass
class OutboxWriter:
    """One installation: a separate database and topics on shared servers."""

    database_url: str
    bootstrap_servers: str
    prefix: str
    shards: dict[int, ShardState] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)

    @property
    def progress_topic(self) -> str:
        """This installation's topic of manifests."""
        return f"{self.prefix}.progress"

    def create_topics(self, *topics: str) -> None:
        """Create the progress topic and data topics with two partitions; use all shards."""
        self.execute("UPDATE outbox.installation SET shards = 16")
        self.topics += topics
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        wanted = [NewTopic(self.progress_topic, 16, 1), *[NewTopic(t, 2, 1) for t in topics]]
        for future in admin.create_topics(wanted).values():
            future.result(30)

    def prepare(self, topic: str, count: int, **fields: Any) -> list[HalfMessage]:
        """Prepare messages with different keys and values; ``together``: under one decision."""
        return asyncio.run(self._prepare(topic, count, fields))

    def end(self, halves: Sequence[HalfMessage], decision: Resolution) -> None:
        """Decide messages."""
        asyncio.run(self._end(halves, decision))

    def publish(
        self,
        alter: Alter = as_it_is,
        *,
        held: Collection[HalfId] = (),
        skipped: Collection[HalfId] = (),
    ) -> None:
        """Publish everything committed so far, one batch per shard, as the relay would."""
        for shard, position, half_ids in self._committed():
            state = self.shards.setdefault(shard, ShardState())
            statuses = {i: b"K" if i in held else b"P" for i in half_ids if i not in skipped}
            self._publish(shard, state, position, statuses, alter)
        self._settle()

    def repair(self, half: HalfMessage, action: str) -> None:
        """Publish a message again as a repair, as the relay would."""
        self._publish_alone(half, Kind.REPAIR, as_it_is, action)

    def release(self, half: HalfMessage, alter: Alter = as_it_is) -> None:
        """Publish a message that was held, as the relay would; its row is marked as well."""
        self._publish_alone(half, Kind.RELEASE, alter)
        self.execute(
            "UPDATE outbox.held_record SET released_at = clock_timestamp() WHERE half_id = %s",
            half.half_id,
        )

    def order_repair(self, half: HalfMessage, action: str = "action") -> None:
        """Publish a message again by an operator's order, which is in the tables as well."""
        self.execute(
            "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n,"
            " publish_error, repair, released_at, release_batch_no)"
            " VALUES (%s, %s, %s, %s, 1, 1, '', %s, clock_timestamp(), %s)"
            " ON CONFLICT (half_id) DO UPDATE"
            " SET (repair, release_batch_no) = (excluded.repair, excluded.release_batch_no)",
            *(half.half_id, half.nonce, half.shard, half.message.topic_id, action),
            self.shards[half.shard].batch_no + 1,
        )
        self.repair(half, action)

    def produce(self, *records: Record) -> None:
        """Produce records in a transaction without a manifest, as no relay would."""
        self._transaction([*records])
        self._settle()

    def abort(self, *records: Record) -> None:
        """Produce records in a transaction that is then aborted."""
        self._transactional_producer.begin_transaction()
        self._produce(records)
        self._transactional_producer.flush(30)
        self._transactional_producer.abort_transaction(30)
        self._settle()

    def expire(self, topic: str, before: int) -> None:
        """Delete the records of a topic below an offset, as retention does; -1 is the log's end."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        places = [TopicPartition(topic, number, before) for number in (0, 1)]
        for future in admin.delete_records(places).values():
            future.result(30)

    def expire_manifests(self, shard: int, batches: int) -> None:
        """Delete the first manifests of a shard, as retention does; each has a marker behind it."""
        partition = Partition(self.progress_topic, shard)
        starts = KafkaLogReader(self.bootstrap_servers).offsets([partition], LogEnd.START)
        first = starts.offsets[partition]
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        place = TopicPartition(self.progress_topic, shard, first + 2 * batches)
        for future in admin.delete_records([place]).values():
            future.result(30)

    def execute(self, statement: str, *parameters: Any) -> None:
        """Run one statement on the database."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement.encode(), parameters)

    def record(self, half: HalfMessage, batch: str | None = None) -> Record:
        """Return the record that this half message becomes; its batch is the shard's last one."""
        state = self.shards.get(half.shard, ShardState())
        return render(half, DecidedBy.PRODUCER, batch or f"{half.shard}.{state.batch_no}.0")

    async def _prepare(self, topic: str, count: int, fields: dict[str, Any]) -> list[HalfMessage]:
        async with make_pool(self.database_url, "writer", pool_max=2) as pool:
            settings = {"paused": True, **fields.pop("group", {})}
            together = fields.pop("together", False)
            group = make_group(f"group-of-{topic}", **settings)
            async with pool.connection() as connection:
                found = await connection.execute(
                    "SELECT id FROM outbox.producer_group WHERE name = %s", (group.name,)
                )
                row = await found.fetchone()
            stored = make_group(group.name, id=row[0]) if row else await store_group(pool, group)
            topic_id = await store_topic(pool, topic)
            messages = [_message(stored, topic, topic_id, n, fields) for n in range(count)]
            if together:
                messages = [structs.replace(messages[0], followers=tuple(messages[1:]))]
            answers = await PostgresHalfStore(pool).prepare(messages)
        prepared = [answer for answer in answers if isinstance(answer, Prepared)]
        return [half for each in prepared for half in (each.half, *each.followers)]

    async def _end(self, halves: Sequence[HalfMessage], decision: Resolution) -> None:
        ends = [End(half_id=h.half_id, nonce=h.nonce, decision=decision) for h in halves]
        async with make_pool(self.database_url, "writer", pool_max=2) as pool:
            await PostgresHalfStore(pool).end(ends)

    def _committed(self) -> list[tuple[int, Position, list[HalfId]]]:
        """Return per shard the ids above its position and where they end."""
        with psycopg.connect(self.database_url) as connection:
            rows = connection.execute(
                "SELECT shard, xid, half_ids FROM outbox.commit_log ORDER BY shard, xid"
            ).fetchall()
        batches: dict[int, tuple[Position, list[HalfId]]] = {}
        for shard, xid, half_ids in rows:
            if xid > self.shards.get(shard, ShardState()).position.xid:
                known = batches.get(shard, (START, []))[1]
                batches[shard] = (Position(xid, len(half_ids)), [*known, *half_ids])
        return [(shard, position, ids) for shard, (position, ids) in batches.items()]

    def _publish(
        self,
        shard: int,
        state: ShardState,
        to: Position,
        statuses: dict[HalfId, bytes],
        alter: Alter,
    ) -> None:
        halves = asyncio.run(self._read(list(statuses)))
        batch_no = state.batch_no + 1
        records: list[Record] = []
        for index, half_id in enumerate(statuses):
            if statuses[half_id] == b"P":
                batch = f"{shard}.{batch_no}.{index}"
                records += alter(render(halves[half_id], DecidedBy.PRODUCER, batch))
        entries = tuple(
            Entry(halves[each].message_id.bytes, status) for each, status in statuses.items()
        )
        manifest = self._manifest(shard, state, to, entries)
        self._transaction(records, (shard, manifest))
        self.shards[shard] = ShardState(position=to, batch_no=batch_no, crc=crc_of(manifest))

    def _publish_alone(
        self, half: HalfMessage, kind: Kind, alter: Alter, action: str | None = None
    ) -> None:
        """Publish one message in a batch without a range."""
        state = self.shards[half.shard]
        batch = f"{half.shard}.{state.batch_no + 1}.0"
        entries = (Entry(half.message_id.bytes, b"P"),)
        manifest = self._manifest(half.shard, state, state.position, entries, kind)
        record = render(half, DecidedBy.PRODUCER, batch, redriven=action)
        self._transaction([*alter(record)], (half.shard, manifest))
        self.shards[half.shard] = replace(state, batch_no=state.batch_no + 1, crc=crc_of(manifest))
        self._settle()

    def _manifest(
        self,
        shard: int,
        state: ShardState,
        to: Position,
        entries: tuple[Entry, ...],
        kind: Kind = Kind.BATCH,
    ) -> bytes:
        return encode(
            Manifest(
                installation=UUID(int=7),
                shard=shard,
                gen=1,
                kind=kind,
                batch_no=state.batch_no + 1,
                prev_crc=state.crc,
                after=state.position,
                to=to,
                entries=entries,
            )
        )

    async def _read(self, half_ids: Sequence[HalfId]) -> dict[HalfId, HalfMessage]:
        async with (
            make_pool(self.database_url, "writer", pool_max=2) as pool,
            pool.connection() as connection,
        ):
            halves = await read_whole_halves(connection, half_ids)
        return {half_id: half for half_id, half in halves.items() if half is not None}

    def _transaction(
        self, records: Sequence[Record], manifest: tuple[int, bytes] | None = None
    ) -> None:
        producer = self._transactional_producer
        producer.begin_transaction()
        self._produce(records)
        if manifest is not None:
            producer.produce(self.progress_topic, manifest[1], partition=manifest[0])
        producer.commit_transaction(30)

    def _produce(self, records: Sequence[Record]) -> None:
        for record in records:
            self._transactional_producer.produce(
                record.topic,
                record.value,
                record.key,
                partition=-1 if record.partition is None else record.partition,
                headers=list(record.headers),
                timestamp=round(time() * 1000),
            )

    def _settle(self) -> None:
        """Wait until what was committed is visible: its markers follow the commit's answer."""
        facts = KafkaLogReader(self.bootstrap_servers)
        partitions = facts.partitions([self.progress_topic, *self.topics])
        for _ in range(600):
            highs = facts.offsets(partitions, LogEnd.HIGH_WATERMARK)
            if not open_transactions(highs, facts.offsets(partitions, LogEnd.LAST_STABLE)):
                return
            Event().wait(0.05)
        raise AssertionError("a transaction stayed open")

    @cached_property
    def _transactional_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "transactional.id": self.prefix,
                "partitioner": "murmur2_random",
                "log_level": 0,
            }
        )
        producer.init_transactions(30)
        return producer


def _message(group: Any, topic: str, topic_id: int, number: int, fields: dict[str, Any]) -> Message:
    defaults = {"key": f"member-{number}".encode(), "value": f'{{"n":{number}}}'.encode()}
    return make_message(group, topic=topic, topic_id=topic_id, **{**defaults, **fields})
