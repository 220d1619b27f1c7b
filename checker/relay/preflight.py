"""Checks that the settings of PostgreSQL and Kafka are safe before the relay starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from checker.relay.threads import Admission
from outbox.errors import ConfigurationError, DatabaseUnavailable, KafkaUnavailable
from outbox.relay.server_requirements import Judgement
from outbox.telemetry.events import Event, get_logger

JudgeServer = Callable[[], Sequence[Judgement]]
"""Judges the settings of one server. Raises DatabaseUnavailable or KafkaUnavailable."""


class Preflight:
    """Admits the relay once both servers have been judged and nothing is unsafe."""

    def __init__(self, judges: Sequence[JudgeServer]) -> None:
        self._judges = judges
        self._unsafe: list[Judgement] = []
        self._admitted = False
        self._logged_errors: set[str] = set()
        self._log = get_logger()

    def admit(self) -> Admission:
        """Judge both servers, until both were once reachable and safe; log each new problem."""
        if self._admitted:
            return Admission.ADMITTED
        unsafe: list[Judgement] = []
        unreachable = False
        for judge in self._judges:
            try:
                unsafe += [each for each in judge() if not each.safe]
            except (DatabaseUnavailable, KafkaUnavailable) as error:
                unreachable = True
                self._note_unreachable(error)
        self._note_unsafe(unsafe)
        self._admitted = not (unsafe or unreachable)
        if unsafe:
            return Admission.REFUSED
        return Admission.UNREACHABLE if unreachable else Admission.ADMITTED

    def refuse_unsafe(self) -> None:
        """Judge the reachable servers. Raises ConfigurationError with every unsafe setting."""
        if self.admit() is Admission.REFUSED:
            found = "; ".join(f"{each.setting}: {each.detail}" for each in self._unsafe)
            raise ConfigurationError(f"the relay does not start on unsafe servers: {found}")

    def _note_unreachable(self, error: DatabaseUnavailable | KafkaUnavailable) -> None:
        """Log once why a server cannot be judged: it is down, or an ACL hides its settings."""
        dependency = "kafka" if isinstance(error, KafkaUnavailable) else "postgres"
        if str(error) not in self._logged_errors:
            self._logged_errors.add(str(error))
            self._log.warning(
                Event.DEPENDENCY_LOST, dependency=dependency, phase="admission", error=str(error)
            )

    def _note_unsafe(self, unsafe: list[Judgement]) -> None:
        for each in unsafe:
            if each not in self._unsafe:
                self._log.error(Event.RELAY_REFUSED, setting=each.setting, found=each.detail)
        self._unsafe = unsafe
