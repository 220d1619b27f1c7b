"""A producer group read from its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import convert

from outbox.checks.producer_group import ProducerGroup


def read_group(row: Mapping[str, Any], secrets: tuple[str, ...] = ()) -> ProducerGroup:
    """Build a producer group from its row; its secrets are passed decrypted."""
    return convert({**row, "secrets": secrets}, ProducerGroup)
