"""Fixtures of every suite; servers start when the first test asks for one."""

from __future__ import annotations

import gc
import re
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from devservers.postgres import EmbeddedPostgres
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.aged_installation.fixtures_choice import add_option, choose, is_aged, skip_young_only
from tests.aged_installation.fixtures_template import make_aged_template
from tests.fixtures_databases import drop_database, make_database, make_template
from tests.fixtures_paths import PROJECT

pytest_plugins = ["tests.fixtures_servers"]

# Hypothesis measures each example by the wall clock: on a busy machine a pause fails a right one.
settings.register_profile("outbox", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outbox")

TOGETHER = (
    "tests/spark/",
    "tests/integration/failpoints/",
    "tests/e2e/demo/",
    "tests/e2e/",
    "tests/model/",
)
"""Folders whose tests share what is dear to start: a JVM, a whole service, a search."""
APART_IF_DEEP = ("tests/spark/audit/",)
"""Folders whose deep tests take so long that the other workers would wait for them."""
LONG_FILES = "tests/integration/mutants/"
"""Its files take so long that the other workers would wait for them, were they not the first."""
FOLDERS_WITH_KAFKA = ("tests/spark/", "tests/integration/failpoints/")
"""The folders above that use the shared broker; a file that does has the mark ``kafka``."""
WITH_BROKER = ("gw0", "gw2")
"""The workers that start the shared broker, which takes ten CPU seconds of each; the others do so
when nothing else is left. The second worker begins with tests/e2e."""
DEEP = re.compile(r"\bmark\.deep\b|\bway_in\b")
"""What a file with deep tests names: the mark, or the fixture one of whose parameters has it."""


class WholeFiles(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker whole files and whole folders of ``TOGETHER``, in the order they are named.

    What tests share is then started once, not once a worker; short files come last, so that no
    worker ends long before the other.
    """

    def _split_scope(self, nodeid: str) -> str:
        folders = (*APART_IF_DEEP, *TOGETHER) if self.config.option.markexpr == "deep" else TOGETHER
        return next((f for f in folders if nodeid.startswith(f)), nodeid.partition("::")[0])

    def _assign_work_unit(self, node: Any) -> None:
        """Give a worker with a broker what needs one first, and the others what needs none.

        Deep tests are given in their order: the longest would begin late.
        """
        if self.config.option.markexpr == "not deep":
            with_broker = node.workerinput["workerid"] in WITH_BROKER
            fitting = (each for each in self.workqueue if needs_broker(each) == with_broker)
            self.workqueue.move_to_end(next(fitting, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)


@cache
def needs_broker(scope: str) -> bool:
    """Return whether tests of a file or folder use the shared broker."""
    if scope.endswith("/"):
        return scope.startswith(FOLDERS_WITH_KAFKA)
    return "pytest.mark.kafka" in (PROJECT / scope).read_text("utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a session run on an installation that has lived."""
    add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Remember which installation was asked for."""
    choose(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without deep tests where only these are asked for: most files have none."""
    if config.option.markexpr != "deep" or not collection_path.name.startswith("test_"):
        return None
    return None if DEEP.search(collection_path.read_text("utf-8")) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what can run only on a young installation; begin with the longest files."""
    skip_young_only(items)
    items.sort(key=lambda item: not item.nodeid.startswith(LONG_FILES))


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from what was collected: it lives as long as the process."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles | None:
    """Distribute by whole files where ``--dist loadscope`` asks for it."""
    return WholeFiles(config, log) if config.option.dist == "loadscope" else None


@pytest.fixture(scope="session")
def template_database(postgres_server: EmbeddedPostgres) -> str:
    """Return the name of the template database: migrated, and aged where that is asked for."""
    make = make_aged_template if is_aged() else make_template
    return make(postgres_server.database_url)


@pytest.fixture
def database_url(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield the URL of a fresh migrated database."""
    url = make_database(postgres_server.database_url, template_database)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """Yield an open pool on a fresh migrated database; sessions open as they are needed."""
    async with make_pool(database_url, "test", pool_max=10, pool_min=1) as opened:
        yield opened
