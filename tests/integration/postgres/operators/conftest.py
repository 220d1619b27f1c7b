"""The world of the relay's tests, for tests of operators."""

from __future__ import annotations

from tests.integration.checker.relay.conftest import world

__all__ = ["world"]
