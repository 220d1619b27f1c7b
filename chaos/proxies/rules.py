"""Which frames a link is to break, and how: rules that count what passes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import count


class Action(StrEnum):
    """What becomes of a frame."""

    HOLD = "hold"
    """It is kept and its connection is cut, so that the client sends it again; the stale copy goes
    to the server later, on a connection of the proxy's own."""
    REPEAT = "repeat"
    """It passes; a copy goes to the server later, on a connection of the proxy's own."""
    DROP_ANSWER = "drop_answer"
    """It passes; when its answer comes, the connection is cut instead."""
    STALL = "stall"
    """It passes late, and all behind it in its connection."""
    CUT_MIDDLE = "cut_middle"
    """Its first half passes, then the connection is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Frames by name, and what becomes of them."""

    name: str
    action: Action
    owner: str = ""
    """only frames of a transactional id that ends so"""
    commits: bool | None = None
    """only EndTxn that commit, or only those that abort"""
    nth: int = 1
    """the first to be broken among the matching ones, from now on"""
    times: int = 1
    seconds: float | None = None
    """how long it is held; None: until ``frames`` have passed, or until it is released"""
    frames: int | None = None
    """how many frames of other connections overtake it"""

    def matches(self, name: str, owner: str, commits: bool | None) -> bool:
        """Tell whether the rule speaks of such a frame."""
        if name != self.name or not owner.endswith(self.owner):
            return False
        return self.commits is None or self.commits is commits


@dataclass(slots=True)
class _Armed:
    number: int
    rule: Rule
    seen: int = 0

    def due(self) -> bool:
        self.seen += 1
        return self.rule.nth <= self.seen < self.rule.nth + self.rule.times

    def used_up(self) -> bool:
        return self.seen >= self.rule.nth + self.rule.times - 1


class RuleBook:
    """The rules of a link; the oldest that is due decides."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._armed: list[_Armed] = []

    def add(self, rule: Rule) -> int:
        """Arm a rule; return its number."""
        armed = _Armed(next(self._numbers), rule)
        self._armed.append(armed)
        return armed.number

    def remove(self, number: int) -> bool:
        """Disarm a rule; False if it was used up."""
        left = [armed for armed in self._armed if armed.number != number]
        found = len(left) < len(self._armed)
        self._armed = left
        return found

    def is_armed(self, number: int) -> bool:
        """Tell whether a rule still waits for frames."""
        return any(armed.number == number for armed in self._armed)

    def clear(self) -> None:
        """Disarm all."""
        self._armed.clear()

    def decide(
        self, name: str, owner: str = "", commits: bool | None = None
    ) -> tuple[int, Rule] | None:
        """Count a passing frame; return the rule that strikes it and its number."""
        struck = None
        for armed in self._armed:
            if armed.rule.matches(name, owner, commits) and armed.due() and struck is None:
                struck = armed.number, armed.rule
        self._armed = [armed for armed in self._armed if not armed.used_up()]
        return struck
