"""What operators say of a topic, or of all topics that begin alike. Pure.

``{"invoices.": {"latency_p99_seconds": 2, "ordered": false, "severity": {"HELD": "low"}}}``: of
several rules that fit the longest name counts, and it counts alone. Findings pass through here once
before they are entered; what finds them knows nothing of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from outbox.errors import ConfigurationError
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass, Kind, Severity

P99: Final = "latency_p99_seconds"
MINUTES: Final = "latency_minutes"
DEFAULT_MINUTES: Final = 5
FOREIGN: Final = {"off": None, "low": Severity.LOW, "high": Severity.HIGH}
PARTITIONERS: Final = {"murmur2": True, "any": False}
"""By name, whether a key says where its record must lie."""
OF_ORDER: Final = (FindingClass.ORDER_INVERSION, FindingClass.KEY_SPLIT)
REPAIRABLE: Final = (Kind.MISSING, Kind.MISMATCH)
BESIDE: Final = {
    FindingClass.ORDER_INVERSION: (FindingClass.POSITION_DRIFT, "outbox_batch"),
    FindingClass.WRONG_PARTITION: (FindingClass.WRONG_OFFSET, "recorded"),
}
"""The lesser fault that a finding names in its detail, and by which name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyTarget:
    """A topic is too slow when its p99 exceeds this in at least so many minutes."""

    p99_seconds: float
    minutes: int = DEFAULT_MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRule:
    """How a topic is judged."""

    ordered: bool = True
    """Whether the order of a key's records is judged, and stands against publishing one again."""
    foreign: Severity | None = None
    """How bad records of other writers are; None where they are welcome."""
    keyed: bool = True
    """Whether a key says in which partition its records must lie."""
    latency: LatencyTarget | None = None
    severities: Mapping[FindingClass, Severity] = field(default_factory=dict)

    def severity_of(self, finding_class: FindingClass) -> Severity | None:
        """Return how bad a class is here; None is what it is everywhere."""
        own = self.foreign if finding_class is FindingClass.FOREIGN else None
        return self.severities.get(finding_class, own)


TopicRules = Mapping[str, TopicRule]
"""Rules by topic or prefix."""

AS_EVERYWHERE: Final = TopicRule()


def topic_rules(given: Mapping[str, Any]) -> TopicRules:
    """Read the rules. Raises ConfigurationError naming what is not understood."""
    return {name: _rule(name, rule) for name, rule in given.items()}


def rule_of(topic: str | None, rules: TopicRules) -> TopicRule:
    """Return the rule of a topic; findings without one are of no topic's rule."""
    fitting = [name for name in rules if topic is not None and topic.startswith(name)]
    return rules[max(fitting, key=len)] if fitting else AS_EVERYWHERE


def targets_of(topics: Collection[str], rules: TopicRules) -> dict[str, LatencyTarget]:
    """Return the target of each topic that has one."""
    targets = {topic: rule_of(topic, rules).latency for topic in topics}
    return {topic: target for topic, target in targets.items() if target is not None}


def ruled(
    finding: Finding, rules: TopicRules, compacted: Collection[str] = frozenset()
) -> Finding | None:
    """Return a finding as the rule of its topic has it, or None where it is none.

    Where order matters neither by rule nor because the topic is ``compacted``, what could be
    published again says so.
    """
    rule = rule_of(finding.topic, rules)
    judged = _judged(finding, rule)
    if judged is None:
        return None
    free = not rule.ordered and judged.topic not in compacted
    noted = {"ordered": False} if free and judged.rule.kind in REPAIRABLE else {}
    severity = rule.severity_of(judged.finding_class)
    return replace(judged, given_severity=severity, detail={**judged.detail, **noted})


def _judged(finding: Finding, rule: TopicRule) -> Finding | None:
    """Return what is left of a finding: a lesser fault of the same message, or nothing."""
    found = finding.finding_class
    by_key = found is FindingClass.WRONG_PARTITION and not finding.detail.get("requested")
    excused = (by_key and not rule.keyed) or (found in OF_ORDER and not rule.ordered)
    if found is FindingClass.FOREIGN and rule.severity_of(found) is None:
        return None
    if not excused:
        return finding
    lesser, name = BESIDE.get(found, (found, ""))
    if name not in finding.detail:
        return None
    return replace(finding, finding_class=lesser, detail={name: finding.detail[name]})


def _rule(name: str, given: Any) -> TopicRule:
    if not isinstance(given, Mapping):
        raise _wrong(name, "is no object")
    if unknown := sorted(set(given) - set(READ) - {MINUTES}):
        raise _wrong(name, f"knows no {unknown[0]!r}; may have {', '.join([*READ, MINUTES])}")
    if MINUTES in given and P99 not in given:
        raise _wrong(name, f"{MINUTES} needs {P99}")
    read: dict[str, Any] = {}
    for member, value in given.items():
        if member in READ:
            field_name, reader = READ[member]
            read[field_name] = reader(name, value)
    if MINUTES in given:
        read["latency"] = replace(read["latency"], minutes=_minutes(name, given[MINUTES]))
    return TopicRule(**read)


def _ordered(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise _wrong(name, "ordered is neither true nor false")
    return given


def _foreign(name: str, given: Any) -> Severity | None:
    if not isinstance(given, str) or given not in FOREIGN:
        raise _wrong(name, f"foreign is none of {', '.join(FOREIGN)}")
    return FOREIGN[given]


def _keyed(name: str, given: Any) -> bool:
    if not isinstance(given, str) or given not in PARTITIONERS:
        raise _wrong(name, f"partitioner is none of {', '.join(PARTITIONERS)}")
    return PARTITIONERS[given]


def _severities(name: str, given: Any) -> dict[FindingClass, Severity]:
    if not isinstance(given, Mapping):
        raise _wrong(name, "severity is no object of classes and severities")
    levels = {each.name.lower(): each for each in Severity}
    for found, level in given.items():
        if found not in FindingClass.__members__:
            raise _wrong(name, f"severity of {found!r}, which is no class")
        if not isinstance(level, str) or level not in levels:
            raise _wrong(name, f"severity of {found} is none of {', '.join(levels)}")
    return {FindingClass[found]: levels[level] for found, level in given.items()}


def _latency(name: str, given: Any) -> LatencyTarget:
    if not isinstance(given, int | float) or isinstance(given, bool) or given <= 0:
        raise _wrong(name, f"{P99} is not above 0")
    return LatencyTarget(p99_seconds=float(given))


def _minutes(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise _wrong(name, f"{MINUTES} is no whole number from 1")
    return given


READ: Final[Mapping[str, tuple[str, Callable[[str, Any], Any]]]] = {
    "ordered": ("ordered", _ordered),
    "foreign": ("foreign", _foreign),
    "partitioner": ("keyed", _keyed),
    "severity": ("severities", _severities),
    P99: ("latency", _latency),
}
"""What a rule may say: into which field it is read, and how."""


def _wrong(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"OUTBOX_RECONCILE_TOPIC_RULES: {name!r}: {what}")
