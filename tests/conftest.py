"""Fixtures of every suite; servers start when the first test asks for one."""

from __future__ import annotations

import gc
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from devservers.postgres import EmbeddedPostgres
from outbox.postgres.sessions.connections import Pool, make_pool
from outbox.settings.environment import drop_variables
from tests.fixtures_databases import drop_database, make_database, make_template

pytest_plugins = ["tests.fixtures_servers"]

drop_variables()

# Hypothesis measures each example by the wall clock: on a busy machine a pause fails a right one.
settings.register_profile("outbox", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outbox")

LONGEST_FIRST = (
    "tests/spark/audit/faults",
    "tests/spark/audit",
    "tests/spark",
    "tests/integration/checker/relay/takeover/test_crashes.py",
    "tests/integration/checker/relay/refusals/test_held.py",
    "tests/e2e",
    "tests/e2e/command/test_outbox_dev.py",
    "tests/chaos",
    "tests/integration/api/http/test_schemathesis.py",
    "tests/integration/checker",
    "tests/integration/kafka",
    "tests/integration",
    "tests/contract",
    "tests/model",
    "tests/unit",
)
"""The order of the files: what comes last is short, so all workers end together.

The most exact name counts: what kills the shared `outbox dev` comes after all that use it.
"""
SHARED = ("tests/spark/", "tests/e2e/")
"""Folders whose tests share a SparkSession, or a service."""
SHARED_DEEP = ("tests/spark/audit/", *SHARED)
"""The same for deep tests: the audits have a SparkSession of their own."""
DEEP = re.compile(r"\bmark\.deep\b")
"""What a file with deep tests names."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without deep tests where only these are asked for: most files have none."""
    if config.option.markexpr != "deep" or not collection_path.name.startswith("test_"):
        return None
    return None if DEEP.search(collection_path.read_text("utf-8")) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first; those of one folder stay together and share what it starts."""
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    fits = [start for start in LONGEST_FIRST if nodeid.startswith(start)]
    return LONGEST_FIRST.index(max(fits, key=len)) if fits else len(LONGEST_FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Let one worker have all that shares a folder: a start takes longer than most of its tests."""
    return FileOrShared(config, log, SHARED_DEEP if config.option.markexpr == "deep" else SHARED)


class FileOrShared(LoadFileScheduling):  # type: ignore[misc]
    """Sends whole files to a worker, and shared folders as if each was one file."""

    def __init__(self, config: pytest.Config, log: Any, shared: Sequence[str]) -> None:
        super().__init__(config, log)
        self._shared = shared

    def _split_scope(self, nodeid: str) -> str:
        shared = next((each for each in self._shared if nodeid.startswith(each)), None)
        return shared or str(super()._split_scope(nodeid))


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from what was collected: it lives as long as the process."""
    gc.freeze()


@pytest.fixture(scope="session")
def template_database(postgres_server: EmbeddedPostgres) -> str:
    """Return the name of the template database: migrated."""
    return make_template(postgres_server.database_url)


@pytest.fixture
def database_url(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield the URL of a fresh migrated database."""
    url = make_database(postgres_server.database_url, template_database)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture(scope="module")
def module_database(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield the URL of one database for all tests of a module."""
    url = make_database(postgres_server.database_url, template_database)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """Yield an open pool on a fresh migrated database; sessions open as they are needed."""
    async with make_pool(database_url, "test", pool_max=10, pool_min=1) as opened:
        yield opened
