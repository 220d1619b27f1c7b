"""A PostgreSQL server whose clock a test sets while it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.programs.false_clock import false_clock
from devservers.child import Command
from devservers.postgres import EmbeddedPostgres


class SteppingPostgres(EmbeddedPostgres):
    """Its clock is the true one plus an offset: libfaketime, preloaded as the server's user."""

    def step(self, offset: str) -> None:
        """Set the clock to an offset, such as ``+4d``; ``+0`` is the true time."""
        self._clock.write_text(offset)
        self._clock.chmod(0o644)

    @property
    def _clock(self) -> Path:
        return self.home / "clock"

    def _command(self, name: str, program: Path, arguments: list[str]) -> Command:
        command = super()._command(name, program, arguments)
        if name == "initdb":
            return command
        self.step("+0")
        clock = {**false_clock(self._clock), "FAKETIME_NO_CACHE": "1"}
        preload = [f"{key}={value}" for key, value in clock.items() if "PYTHON" not in key]
        return replace(command, arguments=["/usr/bin/env", *preload, *command.arguments])
