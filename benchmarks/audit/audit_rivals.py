"""Other methods for the same question on the same stores; each returns the number of different ids.

None of them takes a consistent cut, judges or names anything: they only count. So they are lower
bounds of the cost of a replacement.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

import psycopg
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from xxhash import xxh64_intdigest

from benchmarks.audit.filled_stores import PARTITIONS, Stores
from benchmarks.speed.relay import TOPIC
from outbox.messages.content_digest import SEED
from outbox.messages.message_id import parse_message_id
from outbox.postgres.sessions.jdbc import jdbc_address
from spark.columns import digest, slot
from spark.jvm.kafka_options import kafka_options

COMMITS: Final = "SELECT half_ids, content_digests FROM outbox.reconciliation_commits"
BY_LOG_ALONE: Final = """
    WITH committed AS (SELECT unnest(half_ids) AS half_id FROM outbox.commit_log),
         published AS (SELECT unnest(half_ids) AS half_id FROM outbox.publication_log)
    SELECT count(*) FROM committed FULL JOIN published USING (half_id)
    WHERE committed.half_id IS NULL OR published.half_id IS NULL"""
UNEQUAL: Final = """
    SELECT count(*) FROM commits FULL JOIN records USING (half_id)
    WHERE commits.digest IS DISTINCT FROM records.digest"""


def bare_scan(session: SparkSession, stores: Stores) -> int:
    """Read every record and hash it once: the minimum cost of any Spark job, not a rival."""
    scanned = _log(session, stores).agg(
        F.count("*").alias("records"), F.bit_xor(F.xxhash64("key", "value", "headers"))
    )
    return int(scanned.collect()[0]["records"]) - stores.messages


def full_join(session: SparkSession, stores: Stores) -> int:
    """Join both sides completely on the id, with digests and without staged files."""
    read = _log(session, stores).withColumn("message_id", slot.id_text())
    records = slot.with_half_id(read).select("half_id", digest.content_digest().alias("digest"))
    jdbc = jdbc_address(stores.database_url)
    commits = (
        session.read.format("jdbc")
        .options(url=jdbc.url, user=jdbc.user, password=jdbc.password, fetchsize="2000")
        .options(driver="org.postgresql.Driver", dbtable=f"({COMMITS}) commits")
        .load()
        .select(F.explode(F.arrays_zip("half_ids", "content_digests")).alias("pair"))
        .select(F.col("pair.half_ids").alias("half_id"), F.col("pair.content_digests").alias("d"))
    )
    both = commits.join(records, "half_id", "full_outer")
    return both.where(~F.col("d").eqNullSafe(F.col("digest"))).count()


def arrow_join(stores: Stores) -> int:
    """Read both stores in one Python process and join in Arrow's engine (Acero)."""
    commits, records = _tables(stores)
    renamed = records.rename_columns(["half_id", "found"])
    both = commits.join(renamed, "half_id", join_type="full outer")
    same = pc.fill_null(pc.equal(both["digest"], both["found"]), False)
    return int(both.num_rows - pc.sum(same).as_py())


def duckdb_join(stores: Stores) -> int:
    """Do the same with DuckDB, which is not a dependency of the project."""
    import duckdb  # type: ignore[import-not-found]

    commits, records = _tables(stores)
    connection = duckdb.connect()
    connection.register("commits", commits)
    connection.register("records", records)
    return int(connection.execute(UNEQUAL).fetchone()[0])


def postgres_alone(stores: Stores) -> int:
    """Ask PostgreSQL what the relay has published, without reading Kafka."""
    with psycopg.connect(stores.database_url) as connection:
        row = connection.execute(BY_LOG_ALONE).fetchone()
    assert row is not None
    return int(row[0])


def single_node() -> dict[str, Callable[[Stores], int]]:
    """Return the rivals without Spark whose libraries are installed."""
    rivals: dict[str, Callable[[Stores], int]] = {"confluent-kafka + Arrow": arrow_join}
    if find_spec("duckdb") is not None:
        rivals["confluent-kafka + DuckDB"] = duckdb_join
    return {**rivals, "PostgreSQL alone": postgres_alone}


def _log(session: SparkSession, stores: Stores) -> DataFrame:
    options = kafka_options(stores.bootstrap_servers, {})
    return session.read.format("kafka").options(**options).option("subscribe", TOPIC).load()


def _tables(stores: Stores) -> tuple[Any, Any]:
    return _table(*_commits(stores.database_url)), _table(*_records(stores.bootstrap_servers))


def _table(half_ids: array[int], digests: array[int]) -> Any:
    columns = [pa.array(memoryview(each), pa.int64()) for each in (half_ids, digests)]
    return pa.table(columns, names=["half_id", "digest"])


def _commits(database_url: str) -> tuple[array[int], array[int]]:
    half_ids, digests = array("q"), array("q")
    with (
        psycopg.connect(database_url) as connection,
        connection.cursor("commits", binary=True) as cursor,
    ):
        cursor.itersize = 2000
        for ids, contents in cursor.execute(COMMITS):
            half_ids.extend(ids)
            digests.extend(contents)
    return half_ids, digests


def _records(bootstrap_servers: str) -> tuple[array[int], array[int]]:
    half_ids, digests = array("q"), array("Q")
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "outbox-benchmark",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(TOPIC, n, OFFSET_BEGINNING) for n in range(PARTITIONS)])
    topic, ended = TOPIC.encode(), 0
    while ended < PARTITIONS:
        messages = consumer.consume(10_000, 1.0)
        read = [message for message in messages if message.error() is None]
        ended += sum(_at_end(message) for message in messages)
        half_ids.extend(parse_message_id(_headers(m)[0][1].decode())[0] for m in read)
        digests.extend(_digest(m, topic) for m in read)
    consumer.close()
    return half_ids, array("q", digests.tobytes())


def _at_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def _headers(message: Message) -> list[tuple[str, bytes]]:
    return [(name, _bytes(value)) for name, value in dict(message.headers() or ()).items()]


def _bytes(field: str | bytes | None) -> bytes:
    """Return a field that all generated records have."""
    assert isinstance(field, bytes)
    return field


def _digest(message: Message, topic: bytes) -> int:
    """Return the content digest of a record with key and value, unsigned (``content_digest``)."""
    (_, message_id), _, _, *covered = _headers(message)
    found = SEED
    for each in (message_id, topic, b"kv", _bytes(message.key()), _bytes(message.value())):
        found = xxh64_intdigest(each, found)
    for name, value in covered:
        found = xxh64_intdigest(value, xxh64_intdigest(name.encode(), found))
    return found
