"""Conditions on rows that a test has written itself: an aged installation brings older ones.

Its life ended in older leaves, so what is in the current leaf is new.
"""

from __future__ import annotations

from typing import Final

NEW_HALVES: Final = "half_id >= outbox.watermark() >> 20 << 35"
NEW_COMMITS: Final = "xid >= outbox.watermark() >> 20 << 20"
