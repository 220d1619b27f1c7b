"""Rules that choose the frames to break and how to break them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import count


class Action(StrEnum):
    """The treatment of a frame."""

    HOLD = "hold"
    """It is kept and its connection is cut, so that the client sends it again; the stale copy goes
    to the server later, on the proxy's own connection."""
    REPEAT = "repeat"
    """It passes; a copy goes to the server later, on the proxy's own connection."""
    DROP_ANSWER = "drop_answer"
    """It passes; when its answer comes, the connection is cut instead."""
    STALL = "stall"
    """It is delayed, with everything after it in its connection."""
    CUT_MIDDLE = "cut_middle"
    """Its first half passes, then the connection is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Matches frames by name, and their treatment."""

    name: str
    action: Action
    owner: str = ""
    """only frames whose transactional id ends with this"""
    commits: bool | None = None
    """only EndTxn requests that commit (True) or abort (False)"""
    nth: int = 1
    """number of the first matching frame to break, from now on"""
    times: int = 1
    seconds: float | None = None
    """how long it is held; None: until ``frames`` have passed or it is released"""
    frames: int | None = None
    """how many frames of other connections overtake it"""

    def matches(self, name: str, owner: str, commits: bool | None) -> bool:
        """Return whether the rule matches such a frame."""
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
    """The rules of a link; the oldest due rule applies."""

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
        """Return whether a rule still waits for frames."""
        return any(armed.number == number for armed in self._armed)

    def clear(self) -> None:
        """Disarm all rules."""
        self._armed.clear()

    def decide(
        self, name: str, owner: str = "", commits: bool | None = None
    ) -> tuple[int, Rule] | None:
        """Count a passing frame; return the number of the rule that applies, and the rule."""
        struck = None
        for armed in self._armed:
            if armed.rule.matches(name, owner, commits) and armed.due() and struck is None:
                struck = armed.number, armed.rule
        self._armed = [armed for armed in self._armed if not armed.used_up()]
        return struck
