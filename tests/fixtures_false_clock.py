"""False clocks: libfaketime, preloaded into a program; the monotonic clock stays true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from devservers.child import Command
from devservers.postgres import EmbeddedPostgres

PACKAGE: Final = "libfaketime"
LIBRARY: Final = "vendor/libfaketime/src/libfaketime.so.1"


def library() -> Path:
    """Return the path of libfaketime without importing its package."""
    spec = find_spec(PACKAGE)
    assert spec is not None, f"{PACKAGE} (requirements/dev.txt) is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent / LIBRARY


def false_clock(clock: str | Path) -> Mapping[str, str]:
    """Return the environment variables for a clock, given by its offset such as ``+3d``.

    A path names a file with the offset. When the file changes, the clock of the running program
    steps within a second.
    """
    if isinstance(clock, Path):
        source = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1"}
    else:
        source = {"FAKETIME": clock}
    return {
        "LD_PRELOAD": str(library()),
        **source,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


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
        preload = [f"{key}={value}" for key, value in clock.items()]
        return replace(command, arguments=["/usr/bin/env", *preload, *command.arguments])
