"""Metrics of runs as a file: the names of the page of metrics, replaced whole, never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from outbox.errors import ConfigurationError
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings
from outbox.telemetry.metrics import CATALOGUE
from spark.wiring import textfile
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = pytest.mark.postgres


def settings(database_url: str, file: Path) -> Settings:
    """Return settings that name a database and a textfile."""
    given = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_RECONCILE_TEXTFILE": str(file)}
    return load_settings(given, {})


def samples(file: Path) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the samples of a file by name and label values."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(file.read_text("utf-8"))
        for sample in family.samples
    }


def test_the_file_shows_the_newest_run_with_the_names_of_the_catalogue(
    database_url: str, tmp_path: Path
) -> None:
    store, file = PostgresRunStore(database_url), tmp_path / "outbox.prom"
    plan = {"coverage": 0.5, "dirty_ratio": 0.125, "latency": {"points": {"0.99": 0.25}}}
    store.save(make_run("one", "a", "b", plan=plan, counts={"judged": 7}, timings={"compare": 1.5}))
    write = textfile(settings(database_url, file))
    assert write is not None
    assert write() == f"written to {file}"
    exported = samples(file)
    known = {f"outbox_{each.name}" for each in CATALOGUE if each.name.startswith("reconcile_")}
    assert {name for name, _ in exported} == known
    assert exported[("outbox_reconcile_discrepancies", ("missing",))] == 2
    assert exported[("outbox_reconcile_verdict", ("findings",))] == 1
    assert exported[("outbox_reconcile_messages_checked", ("committed",))] == 7
    assert exported[("outbox_reconcile_publish_latency_seconds", ("0.99", "points"))] == 0.25

    assert exported[("outbox_reconcile_dirty_bucket_ratio", ())] == 0.125
    assert exported[("outbox_reconcile_new_total", ("missing",))] == 2
    assert exported[("outbox_reconcile_resolved_total", ("missing",))] == 0

    store.save(make_run("two", "b", verdict="inconclusive"))
    write()
    exported = samples(file)
    assert ("outbox_reconcile_dirty_bucket_ratio", ()) not in exported
    assert exported[("outbox_reconcile_new_total", ("missing",))] == 2
    assert exported[("outbox_reconcile_resolved_total", ("missing",))] == 1
    assert exported[("outbox_reconcile_discrepancies", ("missing",))] == 1
    assert exported[("outbox_reconcile_verdict", ("findings",))] == 0
    assert [each.name for each in tmp_path.iterdir()] == ["outbox.prom"]


def test_a_file_that_cannot_be_replaced_is_reported_and_kept(
    database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "outbox.prom").mkdir()
    write = textfile(settings(database_url, tmp_path / "outbox.prom"))
    assert write is not None
    assert write().startswith("not written (")
    away = textfile(settings("postgresql://u@127.0.0.1:1/outbox", tmp_path / "other.prom"))
    assert away is not None
    assert away().startswith("not written (")
    assert not (tmp_path / "other.prom").exists()


def test_a_file_without_its_folder_is_refused_before_the_run_begins(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_RECONCILE_TEXTFILE"):
        textfile(settings("postgresql://nowhere", tmp_path / "nowhere" / "outbox.prom"))
