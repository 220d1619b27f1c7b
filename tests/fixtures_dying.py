"""Runs a function in a process of its own, which dies in it."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable


async def exit_code_of(die: Callable[..., None], *arguments: object) -> int | None:
    """Return the exit code of a new interpreter that calls a function of a module."""
    process = multiprocessing.get_context("spawn").Process(target=die, args=arguments)
    process.start()
    await asyncio.to_thread(process.join)
    return process.exitcode
