"""Several workers are one service: they share their listeners and their metrics."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from outbox.postgres.sessions.connections import Pool
from tests.fixtures_waiting import wait_for
from tests.integration.api.fixtures_api_process import free_port, served
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import CHECK_URL, GROUP, GROUPS, HALVES, prepare_body

pytestmark = pytest.mark.postgres

Page = dict[str, dict[tuple[str, ...], float]]
"""Samples by name and label values."""
COUNTERS = "outbox-metrics-*/counter_*.db"
GAUGES = "outbox-metrics-*/gauge_livesum_*.db"
"""The gauges of single workers; of a dead worker only the counters remain."""
SLOW_START = """
import sys, time
if "--multiprocessing-fork" in sys.orig_argv and "spawn_main" in " ".join(sys.orig_argv):
    time.sleep(6)
"""
"""On a busy machine a worker starts so slowly: uvicorn waits five seconds for its first sign."""


@pytest.mark.deep
async def test_any_worker_reports_the_counts_of_all_workers_including_dead_ones(
    database_url: str,
    pool: Pool,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (slow := tmp_path_factory.mktemp("slow") / "sitecustomize.py").write_text(SLOW_START)
    monkeypatch.setenv("PYTHONPATH", str(slow.parent))
    metrics = f"127.0.0.1:{free_port()}"
    async with served(database_url, seconds=180, HTTP_WORKERS="2", METRICS_BIND=metrics) as service:
        await service.client.put(f"{GROUPS}/{GROUP}", json={"check_url": CHECK_URL})
        one_each = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(limits=one_each, timeout=120) as client:
            await prepare_ten(client, service.port)
            killed = await asyncio.to_thread(worker_that_counted, tmp_path)
            os.kill(killed, signal.SIGKILL)
            await asyncio.to_thread(wait_for, lambda: not has_gauges(tmp_path, killed))
            first, *_ = await prepare_ten(client, service.port)
            end = f"http://127.0.0.1:{service.port}{HALVES}/{first}/end"
            (await client.post(end, json={"decision": "COMMIT"})).raise_for_status()
            pages = [await page_of_both(client, metrics)]
            pages += [await scrape(client, metrics) for _ in range(4)]
        assert await service.stop() == 0
    for page in pages:
        assert own(page["outbox_half_prepared_total"]) == {("", GROUP): 20}
        assert own(page["outbox_half_messages"]) == {
            (GROUP, "PREPARED"): 19,
            (GROUP, "COMMITTED"): 1,
        }
        assert list(page["outbox_publish_backlog_messages"].values()) == [1]
        assert page["outbox_db_pool_max"] == {(): 20}
        assert len(page["outbox_build_info"]) == 1
        assert page["outbox_db_tx_duration_seconds_count"][("prepare",)] >= 2
    assert (await stored(pool))[0] == 20
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


def own(samples: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    """Return the samples of the test's group."""
    return {labels: value for labels, value in samples.items() if GROUP in labels}


async def page_of_both(client: httpx2.AsyncClient, metrics: str) -> Page:
    """Return the page once it has the pools of both workers, with 10 connections each."""
    while True:
        page = await scrape(client, metrics)
        if page["outbox_db_pool_max"] == {(): 20}:
            return page
        await asyncio.sleep(0.25)


def worker_that_counted(directory: Path) -> int:
    """Return a worker that has counted messages of the group."""
    files = directory.glob(COUNTERS)
    counted = [path for path in files if GROUP.encode() in path.read_bytes()]
    return int(counted[0].stem.rpartition("_")[2])


def has_gauges(directory: Path, pid: int) -> bool:
    """Return True if a worker's own gauges are shown."""
    return any(path.stem.endswith(f"_{pid}") for path in directory.glob(GAUGES))


async def prepare_ten(client: httpx2.AsyncClient, port: int) -> list[str]:
    """Prepare on connections that any worker may take; return the message ids."""
    url = f"http://127.0.0.1:{port}{HALVES}"
    answers = await asyncio.gather(*(client.post(url, json=prepare_body()) for _ in range(10)))
    assert {answer.status_code for answer in answers} == {201}
    return [answer.json()["message_id"] for answer in answers]


async def scrape(client: httpx2.AsyncClient, metrics: str) -> Page:
    """Return the page of the worker that accepts the connection."""
    text = (await client.get(f"http://{metrics}/metrics")).raise_for_status().text
    samples: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return samples
