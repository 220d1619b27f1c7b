"""The marks of tests that run Spark over both stores."""

from __future__ import annotations

from typing import Final

import pytest

ON_SPARK: Final = [
    pytest.mark.spark,
    # Spark's own collect leaves its local socket to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
REAL_STORES: Final = [*ON_SPARK, pytest.mark.postgres, pytest.mark.kafka]
