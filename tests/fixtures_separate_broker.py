"""A Kafka broker that a test or a file has alone: it may stop it, or give it other settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from devservers.kafka import EmbeddedKafka
from outbox.kafka.progress_topic import ensure_progress_topic


@contextmanager
def separate_broker(
    folder: Path,
    *,
    progress_topic: bool = False,
    settings: Mapping[str, str] | None = None,
    release: str = "",
) -> Iterator[EmbeddedKafka]:
    """Run a broker for the block, with its data below a folder that is removed afterwards.

    A progress topic belongs to one installation at a time, so a test of the default one needs a
    broker of its own: ``progress_topic`` creates it. On an aged installation its logs start above
    0.
    """
    broker = EmbeddedKafka(folder / "kafka", settings=settings, release=release)
    try:
        broker.start()
        if progress_topic:
            ensure_progress_topic(broker.bootstrap_servers)
        yield broker
    finally:
        broker.kill()
        broker.erase()
