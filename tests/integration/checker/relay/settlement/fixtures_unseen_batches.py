"""Batches that consumers may not see, and what the relay makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from uuid import UUID, uuid4

from confluent_kafka import Producer

from outbox.messages.manifest import PUBLISHED, Entry, Kind, Manifest, Position, crc_of, encode
from outbox.messages.message_id import HalfId, Nonce, message_id_bytes, message_id_text
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

REPAIRED: Final = "SELECT count(*) FROM outbox.audit_log WHERE action = 'published_again'"
CHAIN: Final = (
    "SELECT batch_no, crc, gen, position, position_n FROM outbox.progress WHERE name = 'relay:3'"
)


def listed(world: RelayWorld, past: int) -> tuple[str, Manifest]:
    """Let the shard publish some batches, commit a message, and return it with its manifest.

    The manifest is the one that the relay would write next: number, checksum, generation and
    position continue the stored row, so that only the result of its transaction is unusual.
    """
    for value in past_values(past):
        world.commit_values(value)
        drain(world.relay_again())
    drain(world.relay_again())
    world.opened.pop().close()
    (half_id,) = world.commit_values(b"v")
    message = message_text(world, half_id)
    row = world.connection.execute(CHAIN.encode()).fetchone()
    assert row is not None
    batch_no, crc, gen, position, n = row
    manifest = Manifest(
        installation=world.one("SELECT installation_id FROM outbox.installation"),
        shard=SHARD,
        gen=gen,
        kind=Kind.BATCH,
        batch_no=batch_no + 1,
        prev_crc=crc,
        after=Position(position, n),
        to=Position(half_id >> 15, 1),
        entries=(Entry(UUID(message).bytes, PUBLISHED),),
        before=None if batch_no else (),
    )
    return message, manifest


def past_values(past: int) -> list[bytes]:
    """Return the values of the batches that the shard has published before."""
    return [b"past %d" % n for n in range(past)]


def message_text(world: RelayWorld, half_id: HalfId) -> str:
    """Return the message id of a half."""
    nonce = world.one("SELECT nonce FROM outbox.half_message WHERE half_id = %s", half_id)
    text = message_id_text(half_id, Nonce(nonce))
    assert UUID(text).bytes == message_id_bytes(half_id, Nonce(nonce))
    return text


def record_headers(message: str, manifest: Manifest) -> list[tuple[str, str | bytes | None]]:
    """Return our headers of the one record that a manifest lists."""
    return own_headers(message, manifest.batch_no)


def own_headers(message: str, batch_no: int = 1) -> list[tuple[str, str | bytes | None]]:
    """Return our headers of the first record of a batch."""
    batch = f"{SHARD}.{batch_no}.0"
    return [("outbox_message_id", message.encode()), ("outbox_batch", batch.encode())]


def write_manifest(
    world: RelayWorld, manifest: Manifest, *, commit: bool, time_ms: int = 0
) -> None:
    """Write a manifest in a transaction of its own; commit or abort it. Time 0 is the present."""
    with transaction(world) as writer:
        writer.produce(world.progress_topic, encode(manifest), partition=SHARD, timestamp=time_ms)
        writer.flush()
        if commit:
            writer.commit_transaction()
        else:
            writer.abort_transaction()


def write_hung_manifest(world: RelayWorld, manifest: Manifest, time_ms: int = 0) -> None:
    """Write a manifest that hung, and the empty one of a new owner that has committed it."""
    write_manifest(world, manifest, commit=True, time_ms=time_ms)
    empty = replace(
        manifest,
        batch_no=manifest.batch_no + 1,
        prev_crc=crc_of(encode(manifest)),
        after=manifest.to,
        entries=(),
        before=None,
    )
    write_manifest(world, empty, commit=True, time_ms=time_ms)


@contextmanager
def transaction(world: RelayWorld) -> Iterator[Producer]:
    """Yield a producer of another program, in a transaction."""
    config = {
        "bootstrap.servers": world.bootstrap_servers,
        "transactional.id": f"stranger-{uuid4()}",
        "log_level": 0,
    }
    producer = Producer(config)
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer


def abort_record(world: RelayWorld, message: str, manifest: Manifest) -> None:
    """Write the record of a message in a transaction that is aborted."""
    with transaction(world) as lost:
        lost.produce(world.topic, b"v", b"key", headers=record_headers(message, manifest))
        lost.flush()
        lost.abort_transaction()


def unconfirmed_seconds(world: RelayWorld) -> float:
    """Return the gauge of the oldest batch that consumers cannot see."""
    return world.metrics.registry.get_sample_value("outbox_unconfirmed_seconds") or 0.0
