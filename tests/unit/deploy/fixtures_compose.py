"""docker-compose.yml as data."""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.fixtures_paths import PROJECT

COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text("utf-8"))
