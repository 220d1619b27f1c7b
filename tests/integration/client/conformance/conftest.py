"""The driver of each language, and the databases that its client supports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pymysql  # type: ignore[import-untyped]
import pytest

from tests.e2e.languages.fixtures_languages import DRIVEN
from tests.integration.client.conformance.fixtures_drivers import (
    Driver,
    driver_of,
    python_driver,
)


@pytest.fixture(scope="package")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """Return the driver of a language, which is built and started once."""
    with ExitStack() as stack:

        @cache
        def running(name: str) -> Driver:
            if name not in DRIVEN:
                return stack.enter_context(python_driver(name))
            language = DRIVEN[name]
            place = language.make(tmp_path_factory.getbasetemp(), "conformance")
            return stack.enter_context(driver_of(language.drive, place))

        yield running


OTHERS = [pytest.param(name, marks=pytest.mark.deep) for name in DRIVEN]


@pytest.fixture(params=["threads", "asyncio", *OTHERS])
def driver(request: pytest.FixtureRequest, drivers: Callable[[str], Driver]) -> Driver:
    """The driver of each language, unless something is missing."""
    missing = DRIVEN[request.param].missing() if request.param in DRIVEN else None
    if missing is not None:
        pytest.skip(f"{missing} is not on this machine")
    return drivers(request.param)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Return an empty database, as a command names it."""
    kind: str = request.param
    if kind == "mysql":
        socket = request.getfixturevalue("mariadb_socket")
        with pymysql.connect(unix_socket=str(socket), user="root") as session:
            session.cursor().execute("CREATE OR REPLACE DATABASE test")
        return {"kind": kind, "socket": str(socket)}
    url = tmp_path / "local.db" if kind == "sqlite" else request.getfixturevalue("local_database")
    return {"kind": kind, "url": str(url)}
