"""Runs a function in a process of its own, which dies in it."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        f"tests.integration.checker.maintenance.{name}"
        for name in ("test_interrupted_copy", "test_retention")
    ]
)
"""What is imported once, for all processes."""


async def exit_code_of(die: Callable[..., None], *arguments: object) -> int | None:
    """Return the exit code of a process that calls a function of these modules."""
    process = _CONTEXT.Process(target=die, args=arguments)
    process.start()
    await asyncio.to_thread(process.join)
    return process.exitcode
