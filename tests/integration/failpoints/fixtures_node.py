"""One machine of the service: an API and a checker, killed at failpoints and started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from devservers.loopback import free_ports
from outbox.settings.environment import process_environment
from tests.fixtures_databases import as_role
from tests.fixtures_paths import PROJECT

PROGRAMS = ("api", "checker")


def program_of(point: str) -> str:
    """Return which program passes a point."""
    return "api" if point.startswith("api.") else "checker"


class Node:
    """Starts and kills both programs."""

    def __init__(self, database_url: str, bootstrap_servers: str, folder: Path) -> None:
        """``folder`` gets the logs of the programs."""
        api, metrics = free_ports(2)
        self.url = f"http://127.0.0.1:{api}"
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._database_url = database_url
        self._environment = {
            **{k: v for k, v in process_environment().items() if not k.startswith("OUTBOX_")},
            "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
            "OUTBOX_AUTH_MODE": "dev-insecure",
            "OUTBOX_CHECK_ALLOW_CIDRS": "127.0.0.0/8",
            "OUTBOX_HTTP_BIND": f"127.0.0.1:{api}",
            "OUTBOX_CHECKER_METRICS_BIND": f"127.0.0.1:{metrics}",
            "OUTBOX_LOG_LEVEL": "warning",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        self.kill()

    def start(self, failpoints: str = "") -> None:
        """Start both programs, each with a role of its own, as in a deployment."""
        shared = {**self._environment, "OUTBOX_FAILPOINTS": failpoints}
        for program in PROGRAMS:
            url = as_role(self._database_url, f"outbox_{program}")
            with self._log(program).open("ab") as log:
                self._running[program] = subprocess.Popen(
                    [sys.executable, "-m", program],
                    cwd=PROJECT,
                    env={**shared, "OUTBOX_DATABASE_URL": url},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def is_dead(self, program: str) -> bool:
        """Return whether a program has ended; raises AssertionError if not by SIGKILL."""
        if program not in self._running:
            return True
        code = self._running[program].poll()
        if code is None:
            return False
        assert code == -signal.SIGKILL, f"{program} ended with {code}: {self.log_end(program)}"
        del self._running[program]
        return True

    def kill(self) -> None:
        """Kill those of the two programs that still run."""
        for program in PROGRAMS:
            if not self.is_dead(program):
                process = self._running.pop(program)
                process.kill()
                process.wait()

    def log_end(self, program: str) -> str:
        """Return the end of what a program logged."""
        return self._log(program).read_text("utf-8")[-4000:]

    def _log(self, program: str) -> Path:
        return self._folder / f"{program}.log"
