"""Looks at PostgreSQL's and Kafka's settings before the relay of this process starts."""

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
        self._away: set[str] = set()
        self._log = get_logger()

    def admit(self) -> Admission:
        """Judge both servers, until once both were there and safe; logs each new finding."""
        if self._admitted:
            return Admission.ADMITTED
        unsafe: list[Judgement] = []
        away = False
        for judge in self._judges:
            try:
                unsafe += [each for each in judge() if not each.safe]
            except (DatabaseUnavailable, KafkaUnavailable) as error:
                away = True
                self._note_away(error)
        self._note(unsafe)
        self._admitted = not (unsafe or away)
        if unsafe:
            return Admission.REFUSED
        return Admission.AWAY if away else Admission.ADMITTED

    def refuse_unsafe(self) -> None:
        """Judge what is there now; raises ConfigurationError that names every finding."""
        if self.admit() is Admission.REFUSED:
            found = "; ".join(f"{each.setting}: {each.detail}" for each in self._unsafe)
            raise ConfigurationError(f"the relay does not start on unsafe servers: {found}")

    def _note_away(self, error: DatabaseUnavailable | KafkaUnavailable) -> None:
        """Say once why a server cannot be judged: it may be away, or refuse to tell (an ACL)."""
        dependency = "kafka" if isinstance(error, KafkaUnavailable) else "postgres"
        if str(error) not in self._away:
            self._away.add(str(error))
            self._log.warning(
                Event.DEPENDENCY_LOST, dependency=dependency, phase="admission", error=str(error)
            )

    def _note(self, unsafe: list[Judgement]) -> None:
        for each in unsafe:
            if each not in self._unsafe:
                self._log.error(Event.RELAY_REFUSED, setting=each.setting, found=each.detail)
        self._unsafe = unsafe
