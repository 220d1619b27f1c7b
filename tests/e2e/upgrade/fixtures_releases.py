"""Two releases of the product side by side: this tree, and the previous one out of the history."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from devservers.ports import free_ports
from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

STOP_SECONDS = 60
PREVIOUS = "41055351288f"
"""The commit of the previous release."""


@dataclass(frozen=True, slots=True)
class Release:
    """The programs of one tree, run with the settings of one installation."""

    name: str
    tree: Path
    settings: Mapping[str, str]
    logs: Path

    def migrate(self, database_url: str) -> None:
        """Run this release's ``outbox migrate up`` as the owner of the schema."""
        done = subprocess.run(
            self._command("cli", "migrate", "up"),
            cwd=self.tree,
            env=self._environment({"DATABASE_URL": database_url}),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr

    @contextmanager
    def api(self, database_url: str) -> Iterator[str]:
        """Run the API of this release until the block ends; yield its address."""
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        with self._running(
            "api", {"DATABASE_URL": database_url, "HTTP_BIND": address, "AUTH_MODE": "dev-insecure"}
        ) as process:
            url = f"http://{address}"
            wait_for(lambda: process.poll() is not None or _answers(f"{url}/livez"))
            assert process.poll() is None, self._log("api")
            yield url

    @contextmanager
    def checker(self, database_url: str) -> Iterator[None]:
        """Run the checker of this release until the block ends."""
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        with self._running(
            "checker", {"DATABASE_URL": database_url, "CHECKER_METRICS_BIND": address}
        ) as process:
            url = f"http://{address}/metrics"
            wait_for(lambda: process.poll() is not None or _answers(url))
            assert process.poll() is None, self._log("checker")
            yield

    @contextmanager
    def _running(
        self, program: str, settings: Mapping[str, str]
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program; at the end it must stop by itself after SIGTERM, without an error."""
        with self._log_file(program).open("ab") as log:
            process = subprocess.Popen(
                self._command(program),
                cwd=self.tree,
                env=self._environment(settings),
                stdout=log,
                stderr=log,
            )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=STOP_SECONDS) == 0, self._log(program)
        finally:
            process.kill()
            process.wait(timeout=STOP_SECONDS)

    def _command(self, program: str, *words: str) -> list[str]:
        return [sys.executable, "-m", program, *words]

    def _environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        inherited = {
            name: text
            for name, text in process_environment().items()
            if not name.startswith("OUTBOX_")
        }
        given = {f"OUTBOX_{name}": text for name, text in {**self.settings, **settings}.items()}
        return inherited | {"PYTHONPATH": str(self.tree)} | given

    def _log_file(self, program: str) -> Path:
        return self.logs / f"{self.name}-{program}.log"

    def _log(self, program: str) -> str:
        return self._log_file(program).read_text("utf-8")[-2000:]


def previous_tree(folder: Path) -> Path:
    """Unpack the previous release into the folder."""
    packed = folder / "previous.tar"
    command = ["git", "-C", str(PROJECT), "archive", "--output", str(packed), PREVIOUS]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip(f"the commit {PREVIOUS} is not in this clone: git fetch --unshallow")
    tree = folder / "previous"
    tree.mkdir()
    subprocess.run(["tar", "-xf", str(packed), "-C", str(tree)], check=True)
    return tree


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=5, trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False
