"""A producer's check endpoint in a process of its own: ``/slow`` takes 50 ms, ``/hang`` for ever.

Answers single and batch checks; every message was committed. Prints its port.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import web

SLOW_SECONDS: Final = 0.05


async def slow(request: web.Request) -> web.Response:
    """Answer after 50 ms."""
    data = (await request.json())["data"]
    await asyncio.sleep(SLOW_SECONDS)
    if "checks" not in data:
        return web.json_response(verdict(data))
    return web.json_response({"verdicts": [verdict(check) for check in data["checks"]]})


def verdict(check: dict[str, Any]) -> dict[str, str]:
    """Say that the transaction of a check was committed."""
    return {"message_id": check["message_id"], "decision": "COMMIT"}


async def hang(request: web.Request) -> web.Response:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError(request.path)


@contextmanager
def slow_endpoint() -> Iterator[str]:
    """Run the endpoint for the block; yield its address without a path."""
    command = [sys.executable, "-m", "benchmarks.slow_endpoint"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def main() -> None:
    """Serve until killed."""
    application = web.Application()
    application.add_routes([web.post("/slow", slow), web.post("/hang", hang)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
