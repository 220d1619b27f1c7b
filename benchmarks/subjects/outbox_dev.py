"""Runs a real `outbox dev` for the block of a benchmark."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from outbox.settings.environment import process_environment

GROUP, TOPIC = "bench", "bench-topic"
READY_SECONDS: Final = 120


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
def outbox_dev() -> Iterator[dict[str, Any]]:
    """Run ``outbox dev`` in a new folder; yields its dev.json."""
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as folder:
        command = [str(Path(sys.executable).parent / "outbox"), "dev", "--data-dir", folder]
        with (Path(folder) / "dev.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=process_environment())
        try:
            yield wait_ready(Path(folder) / "dev.json", process)
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
