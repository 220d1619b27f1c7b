"""The service as a separate process, and a client of it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from devservers.loopback import free_ports
from outbox.settings.environment import process_environment
from tests.fixtures_databases import as_role
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_programs import program

PROGRAM = program("outbox-api")


def environment(database_url: str, **settings: str) -> dict[str, str]:
    """Return this environment with the settings of one service."""
    inherited = {
        name: value
        for name, value in process_environment().items()
        if not name.startswith("OUTBOX_")
    }
    given = {
        "DATABASE_URL": as_role(database_url, "outbox_api"),
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "AUTH_MODE": "dev-insecure",
        "CHECK_ALLOW_CIDRS": "127.0.0.0/8",
        **settings,
    }
    return inherited | {f"OUTBOX_{name}": value for name, value in given.items()}


def free_port() -> int:
    """Return a free port."""
    return free_ports(1)[0]


class Process:
    """A running ``outbox-api`` and a client of it."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port
        url = f"http://127.0.0.1:{port}"
        self.client = httpx2.AsyncClient(base_url=url, timeout=60, verify=NO_TLS)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(60):
            return await self.process.wait()

    async def raw(self, data: bytes) -> bytes:
        """Send bytes on a new connection and read until the server closes it.

        A server that closes with bytes unread resets the connection, and the answer may be lost.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        try:
            async with asyncio.timeout(60):
                return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


@asynccontextmanager
async def served(
    database_url: str, *, seconds: float = 60, **settings: str
) -> AsyncIterator[Process]:
    """Run the service as a process until the block is left, which may take so long."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        "--bind",
        f"127.0.0.1:{port}",
        env=environment(database_url, **settings),
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=hear_interrupts,
    )
    running = Process(process, port)
    try:
        async with running.client, asyncio.timeout(seconds):
            await until_live(running)
            yield running
    finally:
        await running.stop()


def hear_interrupts() -> None:
    """Restore SIGINT, which a shell ignores for programs in its background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


async def until_live(running: Process) -> None:
    """Wait until the process answers; it must not have ended."""
    while True:
        assert running.process.returncode is None
        try:
            if (await running.client.get("/livez")).status_code == 200:
                return
        except httpx2.TransportError:
            await asyncio.sleep(0.05)
