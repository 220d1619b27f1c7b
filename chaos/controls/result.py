"""What came of a control: whether the harness caught what it had to catch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    """A broken variant and how the harness caught it; one that gets away voids every verdict."""

    name: str
    caught: bool
    how: str
    """what was found, or what was missing"""
