"""Kafka brokers that a test or a file has alone: it may stop them, or give them other settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from devservers.kafka import START_SECONDS, EmbeddedKafka
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


@contextmanager
def running_nodes(
    nodes: Collection[EmbeddedKafka], seconds: float = START_SECONDS
) -> Iterator[None]:
    """Run the nodes of a cluster for the block; they start beside each other."""
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(node.erase)
            stack.callback(node.kill)
            node.launch()
        for node in nodes:
            node.wait_ready(seconds)
        yield
