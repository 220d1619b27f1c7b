"""The world of the checker's tests, for tests of the check queue."""

from __future__ import annotations

from tests.integration.checker.conftest import world

__all__ = ["world"]
