"""The world and the producer of the relay's tests, for tests that publish."""

from __future__ import annotations

from tests.integration.checker.relay.conftest import shop, world

__all__ = ["shop", "world"]
