"""A broadcast that the code forces must fit into the driver's heap, however much is audited.

Spark decides about every other one by the size of the files (`spark.columns.staging`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.fixtures_paths import PROJECT

SHARDS: Final = "one row a shard"
TOPICS: Final = "one row a topic, or a topic and shard"
CARRIED: Final = "rows that a run carries: at most spark.compare.open_items.MOST_ROWS"
KEYS: Final = "at most MOST_BROADCAST misplaced records, or MOST_KEYS keys a topic"
BOUNDED: Final = {
    ("spark/checks/keys.py", "counts"): TOPICS,
    ("spark/checks/keys.py", "since"): TOPICS,
    ("spark/checks/latency.py", "wanted"): TOPICS,
    ("spark/checks/misplaced_keys.py", "before"): KEYS,
    ("spark/checks/misplaced_keys.py", "lasts"): TOPICS,
    (
        "spark/checks/misplaced_keys.py",
        "misplaced.rows.select('topic', 'key_hash').distinct()",
    ): KEYS,
    ("spark/checks/order.py", "kept"): SHARDS,
    ("spark/checks/sample.py", "marks"): CARRIED,
    ("spark/columns/segments.py", "cuts"): SHARDS,
    ("spark/columns/slot.py", "cuts"): SHARDS,
    ("spark/audit/late_arrivals.py", "half_ids"): CARRIED,
    ("spark/audit/late_arrivals.py", "missed"): CARRIED,
    ("spark/jvm/class_archive_builder.py", "cuts"): SHARDS,
}
"""By module and the frame that is broadcast: why its size does not grow with the messages."""


def test_each_forced_broadcast_is_of_a_frame_with_a_known_bound() -> None:
    assert set(forced_broadcasts()) == set(BOUNDED)


def forced_broadcasts() -> Iterator[tuple[str, str]]:
    """Yield the module and the argument of each call, hints included."""
    for path in sorted((PROJECT / "spark").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name in ("broadcast", "hint"):
                yield str(path.relative_to(PROJECT)), ast.unparse(node.args[0])
