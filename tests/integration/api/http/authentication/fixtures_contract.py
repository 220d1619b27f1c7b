"""The OpenAPI document of the product: plain data."""

from __future__ import annotations

from typing import Any, Final

from api.wiring import contract_of
from outbox.telemetry.version import installed_version

DOCUMENT: Final[dict[str, Any]] = contract_of(installed_version())
