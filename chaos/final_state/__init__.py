"""Dumps the final state of PostgreSQL and Kafka as JSON lines for the judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chaos.final_state.kafka import dump_kafka
from chaos.final_state.postgres import dump_postgres


def collect_final_state(
    run: Path, database_url: str, bootstrap: str, topics: Mapping[str, int]
) -> None:
    """Write ``leftovers/``; all programs must have ended.

    Raises psycopg.Error and KafkaException when a store is unavailable.
    """
    folder = run / "leftovers"
    folder.mkdir(exist_ok=True)
    dump_postgres(folder, database_url)
    dump_kafka(folder, bootstrap, topics)
