"""Conditions on the rows of the newest leaf."""

from __future__ import annotations

from typing import Final

NEW_HALVES: Final = "half_id >= outbox.watermark() >> 20 << 35"
NEW_COMMITS: Final = "xid >= outbox.watermark() >> 20 << 20"
