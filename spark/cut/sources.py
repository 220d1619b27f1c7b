"""The only reads: records and manifests from Kafka, commits from PostgreSQL, each up to the cut.

Ranges are explicit, so Spark never asks for the latest offsets, and a hole in a range fails the run
instead of passing as empty. The database is read in the plan's snapshot. Each row proves that: it
contains the snapshot in which it was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from outbox.messages.manifest import START, Position
from outbox.messages.message_id import LOW_BITS, SHARDS
from outbox.reconciliation.snapshot import JdbcAddress, SnapshotIdentity
from spark.columns import digest, manifests, schemas
from spark.cut.cut_plan import Range

CONNECTIONS: Final = 4
"""Limit of the connections from Spark to PostgreSQL; each reads its share of the shards."""
FETCH_ROWS: Final = 2000
"""Zero, Spark's default, means autocommit, which would silently lose the imported snapshot."""
RANGE_RECORDS: Final = 500_000
"""A longer range of one partition is split between tasks."""

COMMITS: Final = """(
    SELECT shard::int4, xid, committed_at, cardinality(half_ids)::int8 AS size, half_ids,
        content_digests, pg_current_snapshot()::text AS visible
    FROM outbox.reconciliation_commits
) commits"""
HALVES: Final = """(
    SELECT {} FROM outbox.reconciliation_halves
    WHERE {} AND topic IN ({}) AND half_id BETWEEN {} AND {}
) halves"""
NAMES: Final = """(
    SELECT half_id, outbox.message_id(half_id, nonce)::text AS message_id, topic, producer_group
    FROM outbox.reconciliation_halves WHERE half_id BETWEEN {} AND {}
) names"""
PLACES: Final = """(
    SELECT place.half_id, l.batch_no, place."partition", place."offset"
    FROM outbox.publication_log l
    CROSS JOIN LATERAL unnest(l.half_ids, l.partitions, l.offsets)
        AS place (half_id, "partition", "offset")
    WHERE l.to_xid >= {}
) places"""
IMPORT_SNAPSHOT: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '{}';"
    " DO 'BEGIN PERFORM set_config(name, $$0$$, false) FROM pg_settings"
    " WHERE name = $$transaction_timeout$$; END'"
)
"""PostgreSQL has that limit from 17 on. A plain SELECT would be planned before the first SET."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The stores that a run reads."""

    spark_session: SparkSession
    kafka_options: Mapping[str, str]
    jdbc: JdbcAddress
    connections: int = CONNECTIONS

    def read_records(self, ranges: Iterable[Range]) -> DataFrame:
        """Return the records of the ranges: place, identity, digest; no key and no value."""
        return digest.described(self._log(ranges))

    def read_manifests(self, ranges: Iterable[Range]) -> DataFrame:
        """Return the manifests of the ranges."""
        return manifests.with_prefix(self._log(ranges))

    def read_commits(
        self, snapshot: SnapshotIdentity, after: Mapping[int, Position] | None = None
    ) -> DataFrame:
        """Return the commit log of the snapshot, each row with the snapshot in which it was read.

        For the shards in ``after``, only the rows that begin there or later.
        """
        return self.spark_session.read.jdbc(
            self.jdbc.url,
            COMMITS,
            predicates=shard_predicates(after or {}, self.connections),
            properties=self._options(snapshot),
        )

    def read_unrequested(
        self, snapshot: SnapshotIdentity, topics: Iterable[str], half_ids: tuple[int, int]
    ) -> DataFrame:
        """Return the half ids in these topics whose producers requested no partition.

        ``half_ids`` are the lowest and the highest relevant id; they prune table partitions.
        """
        return self._halves(snapshot, ("half_id", '"partition" IS NULL'), topics, half_ids)

    def read_keys(
        self, snapshot: SnapshotIdentity, topics: Iterable[str], half_ids: tuple[int, int]
    ) -> DataFrame:
        """Return the half messages of these topics with the hashes of their keys.

        ``tombstone``: it has no value. ``half_ids`` as above.
        """
        columns = "half_id, topic, key, value IS NULL AS tombstone"
        read = self._halves(snapshot, (columns, "key IS NOT NULL"), topics, half_ids)
        return read.select("half_id", "topic", digest.key_hash().alias("key_hash"), "tombstone")

    def _halves(
        self,
        snapshot: SnapshotIdentity,
        asked: tuple[str, str],
        topics: Iterable[str],
        half_ids: tuple[int, int],
    ) -> DataFrame:
        """Read columns of the half messages that fulfil a condition."""
        quoted = ", ".join("'" + topic.replace("'", "''") + "'" for topic in topics)
        statement = HALVES.format(*asked, quoted, *half_ids)
        return self.spark_session.read.jdbc(
            self.jdbc.url, statement, properties=self._options(snapshot)
        )

    def read_stored(self, snapshot: SnapshotIdentity, low: int, high: int) -> DataFrame:
        """Return the names of the half messages of a range of ids, and their recorded places."""
        options = self._options(snapshot)
        names = self.spark_session.read.jdbc(
            self.jdbc.url, NAMES.format(low, high), properties=options
        )
        places = self.spark_session.read.jdbc(
            self.jdbc.url, PLACES.format(low >> LOW_BITS), properties=options
        )
        newest = F.max(F.struct("batch_no", "partition", "offset")).alias("place")
        place = (F.col("place.partition").alias("partition"), F.col("place.offset").alias("offset"))
        recorded = places.groupBy("half_id").agg(newest).select("half_id", *place)
        return names.join(recorded, "half_id", "left")

    def _options(self, snapshot: SnapshotIdentity) -> dict[str, str]:
        return {
            "user": self.jdbc.user,
            "password": self.jdbc.password,
            "driver": "org.postgresql.Driver",
            "fetchsize": str(FETCH_ROWS),
            "sessionInitStatement": IMPORT_SNAPSHOT.format(snapshot.exported_id),
        }

    def _log(self, ranges: Iterable[Range]) -> DataFrame:
        filled = [each for each in ranges if each.end > each.start]
        if not filled:
            return schemas.frame_of(self.spark_session, [], schemas.LOG)
        return (
            self.spark_session.read.format("kafka")
            .options(**self.kafka_options)
            .option("assign", _assignment(filled))
            .option("startingOffsets", _offsets({each: each.start for each in filled}))
            .option("endingOffsets", _offsets({each: each.end for each in filled}))
            .option("maxRecordsPerPartition", str(RANGE_RECORDS))
            .load()
            .select(*schemas.LOG.names)
        )


def shard_predicates(after: Mapping[int, Position], connections: int) -> list[str]:
    """Return the condition of each of up to 16 connections: each shard once, from ``after`` on."""
    shards = [range(first, SHARDS, connections) for first in range(connections)]
    return [" OR ".join(_from(shard, after.get(shard, START)) for shard in some) for some in shards]


def _from(shard: int, position: Position) -> str:
    return f"shard = {shard} AND xid >= {position.xid}"


def _assignment(ranges: Iterable[Range]) -> str:
    assigned: dict[str, list[int]] = {}
    for each in ranges:
        assigned.setdefault(each.partition.topic, []).append(each.partition.number)
    return json.dumps(assigned)


def _offsets(offsets: Mapping[Range, int]) -> str:
    asked: dict[str, dict[str, int]] = {}
    for each, offset in offsets.items():
        asked.setdefault(each.partition.topic, {})[str(each.partition.number)] = offset
    return json.dumps(asked)
