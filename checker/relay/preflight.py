"""Checks that the settings of PostgreSQL and Kafka are safe before the relay starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from checker.relay.threads import Admission
from outbox.errors import ConfigurationError, DatabaseUnavailable, KafkaUnavailable
from outbox.operators.health_check import HealthCheck, failed
from outbox.telemetry.dependency_log import DependencyLog
from outbox.telemetry.events import Event, get_logger

JudgeServer = Callable[[], Sequence[HealthCheck]]
"""Judges the settings of one server. Raises DatabaseUnavailable or KafkaUnavailable."""


class Preflight:
    """Admits the relay once both servers have been judged and nothing is unsafe."""

    def __init__(self, judges: Mapping[str, JudgeServer]) -> None:
        """``judges``: by the name that the log gives the server."""
        self._judges = judges
        self._unsafe: list[HealthCheck] = []
        self._admitted = False
        self._servers = {server: DependencyLog(server, phase="admission") for server in judges}
        self._log = get_logger()

    def admit(self) -> Admission:
        """Judge both servers, until both were once reachable and safe; log each new problem."""
        if self._admitted:
            return Admission.ADMITTED
        unsafe: list[HealthCheck] = []
        unreachable = False
        for server, judge in self._judges.items():
            try:
                unsafe += failed(judge())
            except (DatabaseUnavailable, KafkaUnavailable) as error:
                unreachable = True
                self._servers[server].lost(error)
            else:
                self._servers[server].back()
        self._note_unsafe(unsafe)
        self._admitted = not (unsafe or unreachable)
        if unsafe:
            return Admission.REFUSED
        return Admission.UNREACHABLE if unreachable else Admission.ADMITTED

    def refuse_unsafe(self) -> None:
        """Judge the reachable servers. Raises ConfigurationError with every unsafe setting."""
        if self.admit() is Admission.REFUSED:
            found = "; ".join(f"{each.check}: {each.detail}" for each in self._unsafe)
            raise ConfigurationError(f"the relay does not start on unsafe servers: {found}")

    def _note_unsafe(self, unsafe: list[HealthCheck]) -> None:
        for each in unsafe:
            if each not in self._unsafe:
                self._log.error(Event.RELAY_REFUSED, setting=each.check, found=each.detail)
        self._unsafe = unsafe
