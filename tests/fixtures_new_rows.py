"""Conditions on rows that a test has written itself: an aged installation brings older ones.

Its life ended in older leaves, so what is in the current leaf is new.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from tests.aged_installation.fixtures_choice import is_aged

NEW_HALVES: Final = "half_id >= outbox.watermark() >> 20 << 35"
NEW_COMMITS: Final = "xid >= outbox.watermark() >> 20 << 20"


def new_messages() -> dict[str, str]:
    """Return the filter of a list that leaves out a former life: nothing on a young one."""
    if not is_aged():
        return {}
    lately = datetime.now(UTC) - timedelta(days=1)  # noqa: TID251
    return {"prepared_from": lately.isoformat()}
