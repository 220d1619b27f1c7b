"""What operators say of a topic, or of all topics that begin alike. Pure.

``{"invoices.": {"latency_p99_seconds": 2, "latency_minutes": 5}}``: of several rules that fit the
longest name counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from outbox.errors import ConfigurationError

P99: Final = "latency_p99_seconds"
MINUTES: Final = "latency_minutes"
DEFAULT_MINUTES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyTarget:
    """A topic is too slow when its p99 exceeds this in at least so many minutes."""

    p99_seconds: float
    minutes: int = DEFAULT_MINUTES


TopicRules = Mapping[str, LatencyTarget]
"""Targets by topic or prefix."""


def topic_rules(given: Mapping[str, Any]) -> TopicRules:
    """Read the rules. Raises ConfigurationError naming what is not understood."""
    return {name: _target(name, rule) for name, rule in given.items()}


def targets_of(topics: Collection[str], rules: TopicRules) -> dict[str, LatencyTarget]:
    """Return the target of each topic that has one."""
    fitting = {
        topic: max((name for name in rules if topic.startswith(name)), key=len, default=None)
        for topic in topics
    }
    return {topic: rules[name] for topic, name in fitting.items() if name is not None}


def _target(name: str, rule: Any) -> LatencyTarget:
    if not isinstance(rule, Mapping) or P99 not in rule or set(rule) - {P99, MINUTES}:
        raise _wrong(name, f"needs {P99}, may have {MINUTES}, knows nothing else")
    seconds, minutes = rule[P99], rule.get(MINUTES, DEFAULT_MINUTES)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        raise _wrong(name, f"{P99} is not above 0")
    if not isinstance(minutes, int) or isinstance(minutes, bool) or minutes < 1:
        raise _wrong(name, f"{MINUTES} is no whole number from 1")
    return LatencyTarget(p99_seconds=float(seconds), minutes=minutes)


def _wrong(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"OUTBOX_RECONCILE_TOPIC_RULES: {name!r}: {what}")
