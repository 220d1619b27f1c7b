"""The rules that operators set for a topic, or for all topics with a prefix. Pure.

``{"invoices.": {"latency_p99_seconds": 2, "ordered": false, "severity": {"LOST": "high"}}}``: if
several names match a topic, only the rule of the longest name applies. The rules are applied once,
before a finding is entered. The checks that produce findings do not know them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from outbox.errors import ConfigurationError
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, Kind, Severity, causes_named

P99: Final = "latency_p99_seconds"
MINUTES: Final = "latency_minutes"
DEFAULT_MINUTES: Final = 5
FOREIGN: Final = {"off": None, "low": Severity.LOW, "high": Severity.HIGH}
PARTITIONERS: Final = {"murmur2": True, "any": False}
"""By name: whether a key determines the partition of its records."""
REPAIRABLE: Final = (Kind.MISSING, Kind.MISMATCH)
DRIFT: Final = "outbox_batch"
"""The evidence of POSITION_DRIFT, which a finding of ORDER_INVERSION may contain too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyTarget:
    """A topic is too slow if its p99 exceeds this in at least ``minutes`` minutes."""

    p99_seconds: float
    minutes: int = DEFAULT_MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRule:
    """The rule for judging a topic."""

    ordered: bool = True
    """The order of a key's records is judged, and prevents publishing one again."""
    foreign: Severity | None = None
    """The severity of records of other writers; None if they are permitted."""
    keyed: bool = True
    """A key determines the partition of its records."""
    latency: LatencyTarget | None = None
    severities: Mapping[Cause, Severity] = field(default_factory=dict)

    def severity_of(self, cause: Cause) -> Severity | None:
        """Return the severity of a cause in this topic; None is the severity by its own rule."""
        own = self.foreign if cause is Cause.FOREIGN_RECORD else None
        return self.severities.get(cause, own)


TopicRules = Mapping[str, TopicRule]
"""Rules by topic or prefix."""

DEFAULT_RULE: Final = TopicRule()


def topic_rules(given: Mapping[str, Any]) -> TopicRules:
    """Return the rules. Raises ConfigurationError that names the invalid part."""
    return {name: _rule(name, rule) for name, rule in given.items()}


def rule_of(topic: str | None, rules: TopicRules) -> TopicRule:
    """Return the rule of a topic; without a topic the default rule applies."""
    fitting = [name for name in rules if topic is not None and topic.startswith(name)]
    return rules[max(fitting, key=len)] if fitting else DEFAULT_RULE


def latency_targets(topics: Collection[str], rules: TopicRules) -> dict[str, LatencyTarget]:
    """Return the latency target of each topic that has one."""
    targets = {topic: rule_of(topic, rules).latency for topic in topics}
    return {topic: target for topic, target in targets.items() if target is not None}


def apply_topic_rule(
    finding: Finding, rules: TopicRules, compacted: Collection[str] = frozenset()
) -> Finding | None:
    """Return a finding after the rule of its topic, or None if the rule removes it.

    A repairable finding gets ``"ordered": false`` if its order does not matter: the rule does not
    require order, and the topic is not ``compacted``.
    """
    rule = rule_of(finding.topic, rules)
    judged = _judged(finding, rule)
    if judged is None:
        return None
    free = not rule.ordered and judged.topic not in compacted
    noted = {"ordered": False} if free and judged.rule.kind in REPAIRABLE else {}
    severity = rule.severity_of(judged.cause)
    return replace(judged, given_severity=severity, evidence={**judged.evidence, **noted})


def _judged(finding: Finding, rule: TopicRule) -> Finding | None:
    """Return the rest of a finding: itself, a lesser fault of the same message, or None."""
    if finding.cause is Cause.FOREIGN_RECORD and rule.severity_of(finding.cause) is None:
        return None
    if finding.cause is not Cause.ORDER_INVERSION_KEY or rule.ordered:
        return finding
    if DRIFT not in finding.evidence:
        return None
    drift = {DRIFT: finding.evidence[DRIFT]}
    return replace(finding, cause=Cause.POSITION_DRIFT_HEADER, evidence=drift)


def _rule(name: str, given: Any) -> TopicRule:
    if not isinstance(given, Mapping):
        raise _wrong(name, "is not an object")
    if unknown := sorted(set(given) - set(READERS) - {MINUTES}):
        raise _wrong(
            name,
            f"has an unknown member {unknown[0]!r}; valid are {', '.join([*READERS, MINUTES])}",
        )
    if MINUTES in given and P99 not in given:
        raise _wrong(name, f"{MINUTES} needs {P99}")
    read: dict[str, Any] = {}
    for member, value in given.items():
        if member in READERS:
            field_name, reader = READERS[member]
            read[field_name] = reader(name, value)
    if MINUTES in given:
        read["latency"] = replace(read["latency"], minutes=_minutes(name, given[MINUTES]))
    return TopicRule(**read)


def _ordered(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise _wrong(name, "ordered must be true or false")
    return given


def _foreign(name: str, given: Any) -> Severity | None:
    if not isinstance(given, str) or given not in FOREIGN:
        raise _wrong(name, f"foreign must be one of {', '.join(FOREIGN)}")
    return FOREIGN[given]


def _keyed(name: str, given: Any) -> bool:
    if not isinstance(given, str) or given not in PARTITIONERS:
        raise _wrong(name, f"partitioner must be one of {', '.join(PARTITIONERS)}")
    return PARTITIONERS[given]


def _severities(name: str, given: Any) -> dict[Cause, Severity]:
    """Return the severity of each cause; CLASS/detail goes before CLASS."""
    if not isinstance(given, Mapping):
        raise _wrong(name, "severity must be an object of classes and severities")
    levels, severities = {each.name.lower(): each for each in Severity}, dict[Cause, Severity]()
    for found, level in sorted(given.items()):
        causes = causes_named(found)
        if not causes:
            raise _wrong(name, f"severity of {found!r}, which is not a class")
        if not isinstance(level, str) or level not in levels:
            raise _wrong(name, f"severity of {found} must be one of {', '.join(levels)}")
        severities |= dict.fromkeys(causes, levels[level])
    return severities


def _latency(name: str, given: Any) -> LatencyTarget:
    if not isinstance(given, int | float) or isinstance(given, bool) or given <= 0:
        raise _wrong(name, f"{P99} must be above 0")
    return LatencyTarget(p99_seconds=float(given))


def _minutes(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise _wrong(name, f"{MINUTES} must be a whole number from 1")
    return given


READERS: Final[Mapping[str, tuple[str, Callable[[str, Any], Any]]]] = {
    "ordered": ("ordered", _ordered),
    "foreign": ("foreign", _foreign),
    "partitioner": ("keyed", _keyed),
    "severity": ("severities", _severities),
    P99: ("latency", _latency),
}
"""The members of a rule: the field that each sets, and its reader."""


def _wrong(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"OUTBOX_RECONCILE_TOPIC_RULES: {name!r}: {what}")
