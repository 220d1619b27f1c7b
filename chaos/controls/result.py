"""The result of a control: whether the harness caught the broken variant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    """A broken variant and how it was caught; one that is not caught voids every verdict."""

    name: str
    caught: bool
    how: str
    """what was found, or what was missing"""
