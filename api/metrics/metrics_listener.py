"""Serves ``/metrics`` on a separate address, if ``OUTBOX_METRICS_BIND`` is set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from outbox.errors import ConfigurationError


@asynccontextmanager
async def metrics_listener(
    bind: str | None, render: Callable[[], Awaitable[bytes]], *, shared: bool
) -> AsyncIterator[None]:
    """Serve during the block; without an address do nothing. Raises ConfigurationError.

    ``shared``: several workers listen on the address, and one of them answers.
    """
    if bind is None:
        yield
        return

    async def read_metrics(_: web.Request) -> web.Response:
        return web.Response(body=await render(), content_type="text/plain", charset="utf-8")

    app = web.Application()
    app.router.add_get("/metrics", read_metrics)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    try:
        host, _, port = bind.rpartition(":")
        try:
            site = web.TCPSite(runner, host.strip("[]"), int(port), reuse_port=shared)
            await site.start()
        except (OSError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"OUTBOX_METRICS_BIND: {bind}: {error}") from None
        yield
    finally:
        await runner.cleanup()
