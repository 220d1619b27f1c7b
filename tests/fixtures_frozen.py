"""Servers that are stopped as processes: TCP works, and nobody answers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

POSTMASTER = "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int4"


@contextmanager
def frozen(pids: Iterable[int]) -> Iterator[None]:
    """Stop processes for the block."""
    stopped = list(pids)
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def frozen_postgres(superuser_url: str) -> Iterator[None]:
    """Stop a whole PostgreSQL server for the block, also what it forks meanwhile."""
    with psycopg.connect(superuser_url) as connection:
        row = connection.execute(POSTMASTER).fetchone()
        assert row is not None
        postmaster: int = row[0]
    with frozen([postmaster]), frozen(children_of(postmaster)):
        yield


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
