"""Names the shard of these tests."""

from __future__ import annotations

from typing import Final

SHARD: Final = 3
