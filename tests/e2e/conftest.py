"""One ``outbox dev`` for all tests that do not stop or break it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.fixtures_service import Service, outbox_dev


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a running service that tests share; each uses names of its own."""
    with outbox_dev(tmp_path_factory.mktemp("dev") / "data") as running:
        yield running
