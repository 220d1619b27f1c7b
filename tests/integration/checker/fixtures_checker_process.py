"""Starts and stops the checker as a separate process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from devservers.loopback import free_ports
from outbox.settings.environment import process_environment
from tests.fixtures_databases import as_role
from tests.fixtures_programs import program

STOP_SECONDS = 60


@dataclass
class CheckerProcess:
    """A running checker and the URL of its metrics."""

    process: asyncio.subprocess.Process
    metrics_url: str

    async def says(self, word: str) -> str:
        """Read the log up to the first line with a word; return all lines."""
        said = ""
        assert self.process.stderr is not None
        async with asyncio.timeout(STOP_SECONDS):
            while word not in said:
                said += (await self.process.stderr.readline()).decode()
        return said

    async def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and the whole output."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> tuple[int, str]:
        """Wait until it has ended; return the exit code and the whole output."""
        async with asyncio.timeout(STOP_SECONDS):
            _, said = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, said.decode()


def free_port() -> int:
    """Return a port without a listener."""
    return free_ports(1)[0]


async def start_checker(*arguments: str, **settings: str) -> CheckerProcess:
    """Start ``outbox-checker`` with these settings, named without their prefix."""
    port = free_port()
    mine = {
        "auth_mode": "dev-insecure",
        "check_allow_cidrs": "127.0.0.0/8",
        "checker_metrics_bind": f"127.0.0.1:{port}",
        **settings,
    }
    if "database_url" in settings:
        mine["database_url"] = as_role(settings["database_url"], "outbox_checker")
    inherited = {
        name: text for name, text in process_environment().items() if not name.startswith("OUTBOX_")
    }
    process = await asyncio.create_subprocess_exec(
        program("outbox-checker"),
        *arguments,
        env=inherited | {f"OUTBOX_{name.upper()}": text for name, text in mine.items()},
        stderr=asyncio.subprocess.PIPE,
    )
    return CheckerProcess(process, f"http://127.0.0.1:{port}/metrics")


@asynccontextmanager
async def running_checker(database_url: str, **settings: str) -> AsyncIterator[CheckerProcess]:
    """Run the sweep and the check-backs on a database for the block."""
    checker = await start_checker(
        "--only", "check,sweep,retire", database_url=database_url, **settings
    )
    try:
        yield checker
    finally:
        await checker.stop(signal.SIGKILL)
