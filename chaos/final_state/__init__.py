"""What a run leaves in PostgreSQL and Kafka, written as JSON lines for the judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chaos.final_state.kafka import dump_kafka
from chaos.final_state.postgres import dump_postgres


def collect(run: Path, database_url: str, bootstrap: str, topics: Mapping[str, int]) -> None:
    """Write ``leftovers/``; everything must have come to its end.

    Raises psycopg.Error and KafkaException when a store is away.
    """
    folder = run / "leftovers"
    folder.mkdir(exist_ok=True)
    dump_postgres(folder, database_url)
    dump_kafka(folder, bootstrap, topics)
