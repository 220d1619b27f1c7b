"""The nodes of a statement's plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield each node of a plan in JSON."""
    if isinstance(tree, list):
        for item in tree:
            yield from nodes(item)
    elif isinstance(tree, dict):
        if "Node Type" in tree:
            yield tree
        for item in tree.values():
            yield from nodes(item)
