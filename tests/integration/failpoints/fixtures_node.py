"""One machine of the service: an API and a checker, killed at failpoints and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devservers.ports import free_ports
from outbox.settings.environment import process_environment
from tests.fixtures_databases import as_role
from tests.fixtures_paths import PROJECT

PROGRAMS = ("api", "checker")


def program_of(point: str) -> str:
    """Return which program passes a point."""
    return "api" if point.startswith("api.") else "checker"


class Node:
    """Starts and kills both programs; each life is forked from one warm process."""

    def __init__(self, database_url: str, bootstrap_servers: str, folder: Path) -> None:
        """``folder`` gets the logs of the programs."""
        api, metrics = free_ports(2)
        self.url = f"http://127.0.0.1:{api}"
        self._folder = folder
        self._pids: dict[str, int] = {}
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
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.failpoints.fixtures_zygote"],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        self._zygote.kill()
        self._zygote.communicate()

    def start(self, failpoints: str = "") -> None:
        """Start both programs, each with a role of its own, as in a deployment."""
        shared = {**self._environment, "OUTBOX_FAILPOINTS": failpoints}
        for program in PROGRAMS:
            url = as_role(self._database_url, f"outbox_{program}")
            environment = {**shared, "OUTBOX_DATABASE_URL": url}
            log = str(self._folder / f"{program}.log")
            answer = self._ask(do="start", program=program, environment=environment, log=log)
            self._pids[program] = answer["pid"]

    def is_dead(self, program: str) -> bool:
        """Return whether a program has ended; raises AssertionError if not by SIGKILL."""
        if program not in self._pids:
            return True
        code = self._ask(do="look", pid=self._pids[program])["code"]
        if code is None:
            return False
        assert code == -signal.SIGKILL, f"{program} ended with {code}: {self.log_end(program)}"
        del self._pids[program]
        return True

    def kill(self) -> None:
        """Kill those of the two programs that still run."""
        for program in PROGRAMS:
            if not self.is_dead(program):
                self._ask(do="kill", pid=self._pids.pop(program))

    def log_end(self, program: str) -> str:
        """Return the end of what a program logged."""
        return (self._folder / f"{program}.log").read_text("utf-8")[-4000:]

    def _ask(self, **asked: Any) -> dict[str, Any]:
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.write(json.dumps(asked) + "\n")
        self._zygote.stdin.flush()
        answer: dict[str, Any] = json.loads(self._zygote.stdout.readline())
        return answer
