"""A check endpoint in a separate process: ``/slow`` takes 50 ms, ``/hang`` never answers.

Answers COMMIT to single and batch checks. ``/mixed`` answers at once with COMMIT, ROLLBACK or
UNKNOWN, which depends only on the message id. Prints its port.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import web

SLOW_SECONDS: Final = 0.05


MIXED: Final = ("COMMIT", "ROLLBACK", "UNKNOWN")


async def slow(request: web.Request) -> web.Response:
    """Answer after 50 ms."""
    data = (await request.json())["data"]
    await asyncio.sleep(SLOW_SECONDS)
    return answer(data, committed)


async def mixed(request: web.Request) -> web.Response:
    """Answer at once, depending on the message id."""
    return answer((await request.json())["data"], by_id)


def answer(data: dict[str, Any], decide: Callable[[str], str]) -> web.Response:
    """Answer a single check or a batch of them."""

    def verdict(check: dict[str, Any]) -> dict[str, str]:
        return {"message_id": check["message_id"], "decision": decide(check["message_id"])}

    if "checks" not in data:
        return web.json_response(verdict(data))
    return web.json_response({"verdicts": [verdict(check) for check in data["checks"]]})


def committed(message_id: str) -> str:
    """Return COMMIT for a check."""
    return "COMMIT"


def by_id(message_id: str) -> str:
    """Decide by the end of the message id, which is random."""
    return MIXED[int(message_id[-4:], 16) % len(MIXED)]


async def hang(request: web.Request) -> web.Response:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError(request.path)


@contextmanager
def slow_endpoint() -> Iterator[str]:
    """Run the endpoint for the block; yield its address without a path."""
    command = [sys.executable, "-m", "benchmarks.load.slow_endpoint"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def main() -> None:
    """Serve until killed."""
    application = web.Application()
    routes = {"/slow": slow, "/mixed": mixed, "/hang": hang}
    application.add_routes([web.post(path, handler) for path, handler in routes.items()])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
