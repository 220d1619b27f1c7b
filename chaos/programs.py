"""The programs of a run: each is started again after its death, until it is asked to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devservers.child import CLEAN_ENVIRONMENT, Child, Command

SCRIPTS: Final = Path(sys.executable).parent
LOOK_SECONDS: Final = 1.0
START_SECONDS: Final = 30.0
RESTART_SECONDS: Final = 0.02
FAILED_SECONDS: Final = 1.0
"""A killed program is started again after RESTART_SECONDS; one that ended unasked after these."""
STOPPED: Final = "stopped"
FAILPOINT: Final = "failpoint"
ENDED: Final = "ended with"
"""begins the reason of a program that ended unasked, whatever its code"""

Environment = Callable[[int], Mapping[str, str]]
"""Returns the environment of a program's life from the number of that life."""


class Program:
    """One supervised program, through all its lives."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        environment: Environment,
        folder: Path,
        ended: Callable[[str, str], object] = lambda name, why: None,
    ) -> None:
        """Prepare it; ``ended`` gets name and reason of each end."""
        self.name, self.environment = name, environment
        self.port = 0
        self.lives = 0
        self.failpoint = ""
        """set for the next life only"""
        self._arguments, self._log, self._ended = arguments, folder / f"{name}.log", ended
        self._child: Child | None = None
        self._why = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    @property
    def role(self) -> str:
        """The part of its name before the number."""
        return self.name.partition("-")[0]

    @property
    def pid(self) -> int | None:
        """The process of the present life, None between two lives."""
        child = self._child
        return None if child is None or child.exit_code() is not None else child.pid

    def start(self) -> None:
        """Start the first life."""
        self._thread.start()

    def kill(self, why: str = "kill") -> bool:
        """Kill the present life (SIGKILL); return whether there was one."""
        child = self._child
        if self.pid is None or child is None:
            return False
        self._why = why
        child.kill()
        return True

    def pause(self) -> bool:
        """Pause it (SIGSTOP); return whether it lived."""
        return self._signal(signal.SIGSTOP)

    def resume(self) -> bool:
        """Resume it (SIGCONT)."""
        return self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ask it to stop and wait; it is killed if it takes too long."""
        self._stopping.set()
        self.resume()
        if self._child is not None:
            self._child.stop()
        if self._thread.is_alive():
            self._thread.join(START_SECONDS)

    def _signal(self, number: signal.Signals) -> bool:
        pid = self.pid
        with suppress(ProcessLookupError):
            if pid is not None:
                os.killpg(pid, number)
                return True
        return False

    def _live(self) -> None:
        """Run one life after another in this thread: a child dies with the thread it is from."""
        while not self._stopping.is_set():
            self.lives += 1
            armed, self.failpoint = self.failpoint, ""
            self._child = child = Child(self._command(armed))
            while not child.ends_within(LOOK_SECONDS):
                pass
            code = child.exit_code()
            self._ended(self.name, self._reason(code, armed))
            killed = code == -signal.SIGKILL
            self._stopping.wait(RESTART_SECONDS if killed else FAILED_SECONDS)

    def _command(self, failpoint: str) -> Command:
        extra = {"OUTBOX_FAILPOINTS": failpoint} if failpoint else {}
        return Command(
            name=self.name,
            arguments=self._arguments,
            log=self._log,
            environment={**self.environment(self.lives), **extra},
        )

    def _reason(self, code: int | None, failpoint: str) -> str:
        why, self._why = self._why, ""
        if self._stopping.is_set():
            return STOPPED
        if code == -signal.SIGKILL and (why or failpoint):
            return why or FAILPOINT
        return f"{ENDED} {code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddresses:
    """The addresses and shared secrets of the programs."""

    database_url: str
    bootstrap_servers: str
    pepper: str
    encryption_key: str


def program_environment(
    addresses: ServiceAddresses, *, http_port: int, metrics_port: int, further: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of an API or a checker."""
    return {
        **CLEAN_ENVIRONMENT,
        "OUTBOX_DATABASE_URL": addresses.database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": addresses.bootstrap_servers,
        "OUTBOX_KAFKA_CONFIG": '{"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}',
        "OUTBOX_HTTP_BIND": f"127.0.0.1:{http_port}",
        "OUTBOX_CHECKER_METRICS_BIND": f"127.0.0.1:{metrics_port}",
        "OUTBOX_CHECK_ALLOW_CIDRS": "127.0.0.0/8",
        "OUTBOX_AUTH_MODE": "keys",
        "OUTBOX_AUTH_PEPPER": addresses.pepper,
        "OUTBOX_ENCRYPTION_KEYS": addresses.encryption_key,
        "OUTBOX_LOG_LEVEL": "warning",
        **further,
    }
