"""The fixture of the tests that need a broker with permissions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.kafka.fixtures_secured_broker import SecuredBroker, secured_broker


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Yield the broker, which the tests of this folder share; it ends with the last of them."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as made:
        yield made
