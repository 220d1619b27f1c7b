"""Serves ``/metrics`` on a separate address, if ``OUTBOX_METRICS_BIND`` is set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from outbox.errors import ConfigurationError
from outbox.telemetry.page_listener import BindError, Page, page_listener


@asynccontextmanager
async def metrics_listener(
    bind: str | None, render: Callable[[], Coroutine[None, None, bytes]], *, shared: bool
) -> AsyncIterator[None]:
    """Serve during the block; without an address do nothing. Raises ConfigurationError.

    ``shared``: several workers listen on the address, and one of them answers.
    """
    if bind is None:
        yield
        return
    pages = {"/metrics": Page("text/plain; charset=utf-8", render)}
    try:
        async with page_listener(bind, pages, shared=shared):
            yield
    except BindError as error:
        raise ConfigurationError(f"OUTBOX_METRICS_BIND: {error}") from None
