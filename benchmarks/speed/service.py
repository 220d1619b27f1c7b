"""How many prepare + COMMIT cycles per second does the service reach, compared with its parts?

Single requests over 1 and 64 connections and batches of 500, first with the checker stopped (only
API and PostgreSQL), then while the relay publishes. The same run measures COPY alone, so the
results can be compared as ratios on any machine. The service is a real ``outbox dev``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.load.http_load import batch_cycles, half, single_cycles
from benchmarks.measure.machine import report, start
from benchmarks.raw import copy_rate
from outbox.settings.environment import process_environment

GROUP, TOPIC = "bench", "bench-topic"
READY_SECONDS = 120


def main() -> None:
    """Run the benchmark; ``--scale`` multiplies its sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=256, help="bytes of each value")
    arguments = parser.parse_args()
    with outbox_dev() as running:
        start("service", value_bytes=arguments.size, scale=arguments.scale)
        register(running["api_url"])
        asyncio.run(measure(running, arguments.scale, "x" * arguments.size))


async def measure(running: dict[str, Any], scale: float, value: str) -> None:
    """Measure COPY alone, then the API with PostgreSQL, then everything with the relay."""
    url, database_url = running["api_url"], running["database_url"]
    bare = await asyncio.to_thread(copy_rate.rate, database_url, int(50_000 * scale), 500)
    report("raw COPY", **bare)
    await single_cycles(url, 8, 400, lambda n: half(GROUP, TOPIC, n, value))
    with stopped(running["pids"]["checker"]):
        await cycles(url, scale, value, bare["per_second"], relay="stopped")
    await cycles(url, scale, value, bare["per_second"], relay="beside")


async def cycles(url: str, scale: float, value: str, bare: int, relay: str) -> None:
    """Measure single requests over 1 and 64 connections and batches of 500; print each."""

    def make(n: int) -> dict[str, Any]:
        return half(GROUP, TOPIC, n, value)

    for connections, count in ((1, 1000), (64, 10_000)):
        load = await single_cycles(url, connections, int(count * scale), make)
        report("single prepare + COMMIT", relay=relay, connections=connections, **load.summary())
    load = await batch_cycles(url, 4, int(160 * scale), 500, make)
    figures = load.summary()
    ratio = round(figures["per_second"] / bare, 2)
    report("batch prepare + COMMIT", relay=relay, size=500, to_raw_copy=ratio, **figures)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Pause a process for the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def register(api_url: str) -> None:
    """Register the producer group of the load."""
    body = json.dumps({"check_url": "http://127.0.0.1:65533/check"}).encode()
    request = urllib.request.Request(
        f"{api_url}/v1/producer-groups/{GROUP}",
        data=body,
        method="PUT",
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10):
        pass


@contextmanager
def outbox_dev(
    cores: Collection[int] = (),
    tree: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Run ``outbox dev`` in a new folder, on these cores or on all.

    Yields its dev.json with ``supervisor``, the process that restarts the others, and ``state``,
    the path of dev.json, which is written again after each restart. ``tree`` is another checkout
    of the project, whose code then runs; ``settings`` are OUTBOX_ variables.
    """
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as folder:
        command = [str(Path(sys.executable).parent / "outbox"), "dev", "--data-dir", folder]
        if cores:
            command = ["taskset", "-c", ",".join(map(str, cores)), *command]
        with (Path(folder) / "dev.log").open("wb") as log:
            path = {"PYTHONPATH": str(tree)} if tree else {}
            environment = {**process_environment(), **path, **(settings or {})}
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tree)
        try:
            state = Path(folder) / "dev.json"
            yield {**wait_ready(state, process), "supervisor": process.pid, "state": state}
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def wait_ready(path: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for dev.json, which shows that everything runs; raises SystemExit without it."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists():
            running: dict[str, Any] = json.loads(path.read_text("utf-8"))
            return running
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
    logs = [path.with_name(f"{name}.log") for name in ("dev", "api", "checker")]
    said = [log.read_text("utf-8", errors="replace")[-500:] for log in logs if log.exists()]
    raise SystemExit("\n".join(["outbox dev did not become ready:", *said]))


if __name__ == "__main__":
    main()
